package main

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"sort"
	"sync"
	"syscall"
)

func main() {
	var wg sync.WaitGroup
	ch := make(chan int, 10)
	for i := 0; i < 50; i++ {
		wg.Add(1)
		go func(n int) {
			defer wg.Done()
			s := 0
			for k := 0; k < 20000; k++ {
				s = (s*31 + k + n) % 1000003
			}
			ch <- s
		}(i)
	}
	go func() { wg.Wait(); close(ch) }()
	var all []int
	for v := range ch {
		all = append(all, v)
	}
	sort.Ints(all)
	fmt.Println(len(all), all[0], all[49])
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGUSR1)
	syscall.Kill(os.Getpid(), syscall.SIGUSR1)
	fmt.Println(<-c)
	out, err := exec.Command("echo", "from a child").Output()
	fmt.Print(string(out), err, "\n")
	func() {
		defer func() { fmt.Println("recovered:", recover()) }()
		var p *int
		fmt.Println(*p)
	}()
	m := map[string][]byte{}
	for i := 0; i < 20000; i++ {
		m[fmt.Sprint(i%500)] = make([]byte, 2000)
	}
	fmt.Println(len(m))
	os.Exit(6)
}
