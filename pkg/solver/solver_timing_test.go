package solver

import (
	"fmt"
	"testing"

	"github.com/flipmill/flipmill/pkg/puzzle"
)

// benchBoards is as many boards as a chunk may have, so that lines are a power of
// two apart.
const benchBoards = 1 << 16

// BenchmarkSolve measures runs on one core. Random boards are uniform;
// all-solvable ones are what random presses make of the all-0 board.
//
//	go test ./pkg/solver -run '^$' -bench . -count 5
func BenchmarkSolve(b *testing.B) {
	for _, c := range []struct {
		rule   string
		n      int
		boards int
	}{
		{"plus", 4, benchBoards}, {"plus", 5, benchBoards}, {"plus", 8, benchBoards}, {"plus", 9, benchBoards}, {"plus", 11, benchBoards},
		{"plus", 14, benchBoards}, {"plus", 15, benchBoards}, {"plus", 16, benchBoards}, {"king", 5, benchBoards}, {"king", 16, benchBoards}, {"plus-torus", 15, 1 << 8},
		{"fridge", 4, benchBoards}, {"fridge", 5, benchBoards}, {"fridge", 15, 1 << 8}, {"fridge", 16, benchBoards},
	} {
		size := puzzle.Size{Rows: c.n, Cols: c.n}
		for name, boards := range benchRuns(b, c.rule, size, c.boards) {
			b.Run(fmt.Sprintf("%s/%s/%s", c.rule, size, name), func(b *testing.B) {
				s := mustSolver(b, c.rule, size)
				var a puzzle.Answers
				s.Solve(&a, boards, puzzle.Zero)
				b.ReportAllocs()
				for b.Loop() {
					s.Solve(&a, boards, puzzle.Zero)
				}
				report(b, boards.Count)
			})
		}
	}
}

// BenchmarkTargets compares the targets.
func BenchmarkTargets(b *testing.B) {
	for _, n := range []int{5, 9, 15} {
		size := puzzle.Size{Rows: n, Cols: n}
		boards := benchRuns(b, "plus", size, benchBoards)["solvable"]
		for _, target := range targets {
			b.Run(fmt.Sprintf("%s/%s", size, target), func(b *testing.B) {
				s := mustSolver(b, "plus", size)
				var a puzzle.Answers
				for b.Loop() {
					s.Solve(&a, boards, target)
				}
				report(b, boards.Count)
			})
		}
	}
}

// BenchmarkPlainRows is what BenchmarkSolve is to be compared with: the plain
// enumeration of all first rows.
func BenchmarkPlainRows(b *testing.B) {
	for _, n := range []int{4, 5, 8, 9, 11, 14, 15, 16} {
		size := puzzle.Size{Rows: n, Cols: n}
		for name, boards := range benchRuns(b, "plus", size, 64) {
			b.Run(fmt.Sprintf("plus/%s/%s", size, name), func(b *testing.B) {
				board, solution := make([]uint16, n), make([]uint16, n)
				for i := 0; b.Loop(); i++ {
					for l := range board {
						board[l] = boards.Masks[l*boards.Count+i%boards.Count]
					}
					plainRows(solution, board, n)
				}
				report(b, 1)
			})
		}
	}
}

// BenchmarkCheck measures Check and, for comparison, the pressing that is its
// larger part.
func BenchmarkCheck(b *testing.B) {
	for _, n := range []int{5, 15} {
		size := puzzle.Size{Rows: n, Cols: n}
		boards := benchRuns(b, "plus", size, benchBoards)["random"]
		s := mustSolver(b, "plus", size)
		var a puzzle.Answers
		var scratch puzzle.Run
		s.Solve(&a, boards, puzzle.Zero)
		b.Run(fmt.Sprintf("plus/%s/check", size), func(b *testing.B) {
			for b.Loop() {
				if err := s.Check(&scratch, boards, &a); err != nil {
					b.Fatal(err)
				}
			}
			report(b, boards.Count)
		})
		b.Run(fmt.Sprintf("plus/%s/press", size), func(b *testing.B) {
			for b.Loop() {
				copy(scratch.Masks, boards.Masks)
				s.rule.Press(scratch, a.Solutions)
			}
			report(b, boards.Count)
		})
	}
}

// BenchmarkNew measures the set-up.
func BenchmarkNew(b *testing.B) {
	for _, c := range []struct {
		rule string
		size puzzle.Size
	}{{"plus", puzzle.Size{Rows: 5, Cols: 5}}, {"plus", puzzle.Size{Rows: 16, Cols: 16}}, {"plus", puzzle.Size{Rows: 256, Cols: 16}},
		{"king", puzzle.Size{Rows: 16, Cols: 16}}, {"king", puzzle.Size{Rows: 256, Cols: 16}}, {"fridge", puzzle.Size{Rows: 15, Cols: 15}}} {
		b.Run(fmt.Sprintf("%s/%s", c.rule, c.size), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				mustSolver(b, c.rule, c.size)
			}
		})
	}
}

func benchRuns(b *testing.B, rule string, size puzzle.Size, count int) map[string]puzzle.Run {
	rng := seeded(b)
	random, presses := puzzle.NewRun(size, count), puzzle.NewRun(size, count)
	full := uint16(1)<<size.Width() - 1
	for k := range random.Masks {
		random.Masks[k], presses.Masks[k] = uint16(rng.Uint32())&full, uint16(rng.Uint32())&full
	}
	solvable := puzzle.NewRun(size, count)
	mustRule(b, rule).Press(solvable, presses)
	return map[string]puzzle.Run{"random": random, "solvable": solvable}
}

// report says how many boards a second were solved, and nanoseconds a board.
func report(b *testing.B, boards int) {
	perBoard := float64(b.Elapsed().Nanoseconds()) / float64(b.N) / float64(boards)
	b.ReportMetric(1e9/perBoard, "boards/s")
	b.ReportMetric(perBoard, "ns/board")
	b.ReportMetric(0, "ns/op")
}
