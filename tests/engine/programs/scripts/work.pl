use strict; use warnings;
my (%h, @l);
open(my $f, '<', 'text.txt') or die;
while (<$f>) { chomp; my @w = split; $h{$_}++ for @w[1..$#w]; push @l, $_ if /sh(i)ps.*\bfox\b/; }
print "$_ $h{$_}\n" for sort { $h{$b} <=> $h{$a} || $a cmp $b } keys %h;
print scalar(@l), " ", length(join '', @l), "\n";
my $s = join ',', map { $_ * 3 % 101 } 1..5000;
$s =~ s/(\d+),(\d+)/$2-$1/g; print substr($s, 100, 60), "\n";
local $SIG{ALRM} = sub { die "alarm\n" };
eval { alarm 1; select(undef, undef, undef, 5); }; print $@;
my $pid = fork // die; if (!$pid) { exit 21 } waitpid $pid, 0; print $? >> 8, "\n";
print `echo from a shell; exit 3`, $? >> 8, "\n";
printf "%.10f %e %s\n", sqrt(2), 1e100, 0x7fffffff * 3;
print join(' ', unpack('C*', pack('nNv', 1, 2, 3))), "\n";
exit 6;
