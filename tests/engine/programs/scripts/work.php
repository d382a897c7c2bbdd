<?php
$words = array_count_values(str_word_count(file_get_contents("text.txt"), 1));
arsort($words); ksort($words); echo count($words), " ", md5(json_encode($words)), "\n";
function fib($n) { return $n < 2 ? $n : fib($n - 1) + fib($n - 2); }
echo fib(20), " ", preg_replace('/(\w)(\w*)/', '$2$1', "swap the letters"), "\n";
function squares() { for ($i = 0; $i < 1000; $i++) yield $i * $i; }
echo array_sum(iterator_to_array(squares())), "\n";
try { intdiv(1, 0); } catch (DivisionByZeroError $e) { echo $e->getMessage(), "\n"; }
exit(8);
