//go:build cluster

package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/flipmill/flipmill/pkg/bench"
	"github.com/flipmill/flipmill/pkg/puzzle"
)

// BenchmarkRoles is the measured side of docs/scaling.md: producer, workers with one
// slot each, aggregator and NATS servers as processes, and what each takes. Jobs with
// one worker and with two take turns, -rounds of them; figures are medians.
func BenchmarkRoles(b *testing.B) {
	binary := buildBinary(b)
	small := puzzle.Size{Rows: 5, Cols: 5}
	for _, c := range []struct {
		name    string
		servers int
		records int
		corpus  []string
	}{
		{"text", 1, *benchRecords, []string{"boards.txt", "--size", "5x5"}},
		{"text,replicas=3", 3, *benchRecords, []string{"boards.txt", "--size", "5x5"}},
		// 40 µs of a core for each board: what the workers do is all there is.
		{"slow", 1, *benchRecords / 10, []string{"--generate", fmt.Sprintf("solvable,count=%d", *benchRecords/10), "--size", "15x15", "--rule", "fridge"}},
	} {
		b.Run(c.name, func(b *testing.B) {
			dir := b.TempDir()
			writeBoards(b, filepath.Join(dir, "boards.txt"), small, c.records)
			metrics := map[string][]float64{}
			for b.Loop() {
				for range *benchRounds {
					var took [3]time.Duration
					for workers := 1; workers <= 2; workers++ {
						r := &roles{b: b, dir: b.TempDir(), binary: binary, metrics: metrics, records: c.records, workers: workers}
						corpus := append([]string{filepath.Join(dir, c.corpus[0])}, c.corpus[1:]...)
						if c.corpus[0] == "--generate" {
							corpus = c.corpus
						}
						took[workers] = r.measure(c.servers, corpus)
					}
					metrics["speed-up"] = append(metrics["speed-up"], took[1].Seconds()/took[2].Seconds())
				}
			}
			for name, values := range metrics {
				b.ReportMetric(bench.Median(values), name)
			}
		})
	}
}

// roles are the processes of one job.
type roles struct {
	b       *testing.B
	dir     string
	binary  string
	urls    []string
	metrics map[string][]float64
	records int
	workers int
}

// measure runs a job and writes down what it took; it returns the time.
func (r *roles) measure(servers int, corpus []string) time.Duration {
	brokers := r.servers(servers)
	r.start("setup", "--replicas", fmt.Sprint(servers)).succeed()
	aggregator := r.start("aggregator", "-o", "out")
	var workers []*process
	for range r.workers {
		workers = append(workers, r.start("worker", "--workers", "1"))
	}
	for _, p := range append(workers, aggregator) {
		p.await(" started", 1)
	}
	begin := time.Now()
	submit := r.start("submit", append(corpus, "--job", "boards", "--wait")...)
	submit.succeed()
	took := time.Since(begin)
	for _, p := range append(append(workers, aggregator), brokers...) {
		p.signal(syscall.SIGTERM)
		p.exit()
	}
	r.tell("producer", submit)
	r.tell("worker", workers...)
	r.tell("aggregator", aggregator)
	r.tell("broker", brokers...)
	return took
}

// tell writes down the CPU time of processes for each board.
func (r *roles) tell(name string, processes ...*process) {
	cpu := time.Duration(0)
	for _, p := range processes {
		cpu += p.cmd.ProcessState.UserTime() + p.cmd.ProcessState.SystemTime()
	}
	name += "-cpu-ns/board"
	r.metrics[name] = append(r.metrics[name], float64(cpu.Nanoseconds())/float64(r.records))
}

// start starts a verb as a process of its own.
func (r *roles) start(verb string, args ...string) *process {
	return start(r.b, nil, r.dir, r.binary, append([]string{verb, "--nats-url", strings.Join(r.urls, ","), "--log-level", "info"}, args...)...)
}

// servers starts NATS servers that know each other and returns when clients find
// them ready.
func (r *roles) servers(n int) (servers []*process) {
	clients, routes := freeAddresses(r.b, n), freeAddresses(r.b, n)
	for i := range n {
		_, port, _ := strings.Cut(clients[i], ":")
		args := []string{"-a", "127.0.0.1", "-p", port, "-js", "-sd", filepath.Join(r.dir, fmt.Sprint("n", i))}
		if n > 1 {
			args = append(args, "-n", fmt.Sprint("n", i), "--cluster_name", "c", "--cluster", "nats://"+routes[i], "--routes", "nats://"+strings.Join(routes, ",nats://"))
		}
		servers = append(servers, start(r.b, nil, r.dir, "nats-server", args...))
		r.urls = append(r.urls, "nats://"+clients[i])
	}
	for _, s := range servers {
		s.await("Server is ready", 1)
		if n > 1 {
			s.await("metadata leader", 1)
		}
	}
	return servers
}
