set f [open text.txt]; set total 0
while {[gets $f line] >= 0} { incr total [string length $line]; foreach w $line { incr n($w) } }
puts "$total [array size n] [lsort -decreasing [array names n a*]]"
proc fib n { expr {$n < 2 ? $n : [fib [expr {$n - 1}]] + [fib [expr {$n - 2}]]} }
puts [fib 16]
puts [exec sort -r << "b\na"]
after 20 {set done 1}; vwait done
puts [expr {2**100}]; exit 3
