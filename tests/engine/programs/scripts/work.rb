words = File.read("text.txt").scan(/\w+/).tally
puts words.sort_by { |w, n| [-n, w] }.first(5).inspect
puts (1..8).map { |i| Thread.new { (1..2000).reduce { |a, b| (a * b + i) % 1_000_003 } } }.map(&:value).inspect
pid = fork { exit 12 }
Process.wait pid
puts $?.exitstatus, `echo shell`.chomp, 2**200
begin; raise ArgumentError, "raised"; rescue => e; puts e.message; end
f = Fiber.new { 3.times { |i| Fiber.yield i }; :end }
puts 4.times.map { f.resume }.inspect
exit 2
