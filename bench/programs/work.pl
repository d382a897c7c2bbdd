use strict; use warnings;
my $n = shift; my $words = shift // 3000; my (%h, $s); $s = 42;
for my $i (1 .. $n) {
    $s = ($s * 1103515245 + 12345) % 2147483648;
    my $w = "word" . $s % $words;
    $h{$w} .= chr(97 + $s % 26) if length($h{$w} // '') < 50;
    $h{$w}++ if $i % 1000 == 0 && $h{$w} =~ /^\d+$/;
}
my @k = sort { $h{$a} cmp $h{$b} || $a cmp $b } keys %h;
my $text = join ' ', map { "$_=$h{$_}" } @k;
my $c = 0; $c++ while $text =~ /(\w)\1(\w+?)=([a-m]+)/g;
$text =~ s/([aeiou])([^aeiou])/$2$1/g;
print scalar(@k), " $c ", length($text), " ", unpack('%32C*', $text), "\n";
