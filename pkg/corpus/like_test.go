package corpus_test

import (
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/flipmill/flipmill/pkg/corpus"
	"github.com/flipmill/flipmill/pkg/puzzle"
)

// readLike is readAll by means of NextLike, with 0 to 9 boards wanted at a time. It
// also returns how many records it had to leave to Next.
func readLike(t testing.TB, in io.Reader, opts corpus.Options) (shown []string, left int, err error) {
	t.Helper()
	c, err := corpus.Open(t.Context(), []string{corpus.Stdin}, opts, in)
	if err != nil {
		return nil, 0, err
	}
	defer c.Close()
	var rec, like corpus.Record
	for k := 0; ; k++ {
		if err = c.Next(&rec); err != nil {
			break
		}
		left++
		shown = append(shown, show(&rec))
		for masks, n := c.NextLike(&rec, nil, k%10); n > 0; n-- {
			like.Line, like.Board = rec.Line+int64(len(masks)/len(rec.Board.Masks)-n)+1, rec.Board
			like.Board.Masks = masks[len(masks)-n*len(rec.Board.Masks):][:len(rec.Board.Masks)]
			shown = append(shown, show(&like))
		}
	}
	if err == io.EOF {
		err = nil
	}
	return shown, left, err
}

// The records are those of Next, whatever is between the plain boards.
func TestNextLike(t *testing.T) {
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 1))
		size := puzzle.Size{Rows: 1 + rng.IntN(16), Cols: 1 + rng.IntN(16)}
		symbols := []puzzle.Symbols{puzzle.Digits(), {On: 'b', Off: 'w'}, {On: '#', Off: '.'}}[rng.IntN(3)]
		var text strings.Builder
		for range 200 {
			var board []byte
			for range size.Cells() {
				board = append(board, []byte{symbols.On, symbols.Off}[rng.IntN(2)])
			}
			switch at := rng.IntN(len(board)); rng.IntN(30) {
			case 0:
				board[at] ^= 1 << rng.IntN(8)
			case 1:
				board = board[:at]
			case 2:
				board = slices.Insert(board, at, ' ')
			case 3:
				board = append(board, " \t0/"[rng.IntN(4)])
			}
			text.Write(board)
			text.WriteString([]string{"\n", "\n", "\n", "\r\n", "\n\n"}[rng.IntN(5)])
		}
		whole := strings.TrimRight(text.String(), "\r\n")[:max(0, text.Len()-rng.IntN(40)-3)]
		opts := corpus.Options{Format: corpus.Lines, Size: size, Symbols: symbols, ColumnMajor: seed%10 == 0}
		want, _, wantErr := readAll(t, strings.NewReader(whole), opts)
		for _, in := range []io.Reader{strings.NewReader(whole), iotest.HalfReader(strings.NewReader(whole))} {
			got, _, err := readLike(t, in, opts)
			if fmt.Sprint(err) != fmt.Sprint(wantErr) || !slices.Equal(got, want) {
				t.Fatalf("seed %d, %s: got %d records, %v, want %d, %v\n%q\n%q", seed, size, len(got), err, len(want), wantErr, got, want)
			}
		}
	}
}

// A plain corpus is not read board by board, and reading it allocates nothing.
func TestNextLikeIsFast(t *testing.T) {
	const boards = 100_000
	for _, end := range []string{"\n", "\r\n"} {
		text := strings.Repeat(strings.Repeat("0110100", 3)+"1110"+end, boards)
		c, err := corpus.Open(t.Context(), []string{corpus.Stdin}, corpus.Options{Format: corpus.Lines, Size: puzzle.Size{Rows: 5, Cols: 5}}, strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		var rec corpus.Record
		masks := make([]uint16, 0, 5*boards)
		all, left := 0, 0
		allocs := testing.AllocsPerRun(1, func() {
			for c.Next(&rec) == nil {
				_, n := c.NextLike(&rec, masks, boards)
				all, left = all+1+n, left+1
			}
		})
		if all != boards || left > boards/1000 || allocs > 20 {
			t.Errorf("%q: %d boards, %d of them by Next, %v allocations", end, all, left, allocs)
		}
	}
}
