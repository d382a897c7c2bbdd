use strict; use warnings;
my $n = shift; my $words = shift // 3000; my (%h, $s); $s = 42;
my $piece = 20000; my $say = paced();
for (my $done = 0; $done < $n; $done += $piece) {
    for my $i ($done + 1 .. ($done + $piece < $n ? $done + $piece : $n)) {
        $s = ($s * 1103515245 + 12345) % 2147483648;
        my $w = "word" . $s % $words;
        $h{$w} .= chr(97 + $s % 26) if length($h{$w} // '') < 50;
        $h{$w}++ if $i % 1000 == 0 && $h{$w} =~ /^\d+$/;
    }
    $say->();
}
my @k = sort { $h{$a} cmp $h{$b} || $a cmp $b } keys %h;
my $text = join ' ', map { "$_=$h{$_}" } @k;
my $c = 0; $c++ while $text =~ /(\w)\1(\w+?)=([a-m]+)/g;
$text =~ s/([aeiou])([^aeiou])/$2$1/g;
print scalar(@k), " $c ", length($text), " ", unpack('%32C*', $text), "\n";

# Says when a piece of work is done, and the CPU time so far, for turns.py.
sub paced {
    return sub {} unless $ENV{PACE};
    require Time::HiRes;
    open(my $out, '>', $ENV{PACE}) or die;
    syswrite $out, "$$\n";
    return sub {
        syswrite $out, sprintf "%.9f %.9f\n", map { Time::HiRes::clock_gettime($_) }
            Time::HiRes::CLOCK_MONOTONIC(), Time::HiRes::CLOCK_PROCESS_CPUTIME_ID();
    };
}
