package puzzle_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/flipmill/flipmill/pkg/puzzle"
)

// sizes has every kind of shape: narrow, square, byte borders, both limits, and
// boards stored by columns.
var sizes = []puzzle.Size{
	{Rows: 1, Cols: 1}, {Rows: 1, Cols: 2}, {Rows: 2, Cols: 1}, {Rows: 2, Cols: 2}, {Rows: 3, Cols: 5}, {Rows: 4, Cols: 8}, {Rows: 5, Cols: 5},
	{Rows: 7, Cols: 9}, {Rows: 16, Cols: 16}, {Rows: 256, Cols: 16}, {Rows: 2, Cols: 17}, {Rows: 16, Cols: 256}, {Rows: 1, Cols: 256}, {Rows: 5, Cols: 33},
	{Rows: 17, Cols: 17}, {Rows: 19, Cols: 32}, {Rows: 20, Cols: 33}, {Rows: 33, Cols: 20}, {Rows: 18, Cols: 64}, {Rows: 64, Cols: 64}, {Rows: 256, Cols: 63}, {Rows: 63, Cols: 256},
}

// grid is a board as a person would write it down: one bool a cell.
type grid struct {
	size  puzzle.Size
	cells []bool
}

func randomGrid(rng *rand.Rand, size puzzle.Size) grid {
	g := grid{size, make([]bool, size.Cells())}
	for k := range g.cells {
		g.cells[k] = rng.IntN(2) == 1
	}
	return g
}

func (g grid) text() string {
	var b strings.Builder
	for _, on := range g.cells {
		fmt.Fprint(&b, map[bool]int{true: 1}[on])
	}
	return b.String()
}

func (g grid) bits() []byte {
	packed := make([]byte, (len(g.cells)+7)/8)
	for k, on := range g.cells {
		if on {
			packed[k/8] |= 0x80 >> (k % 8)
		}
	}
	return packed
}

// press toggles cells one by one, straight from the description of the rule.
func (g grid) press(rule string, row, col int) {
	base, torus := strings.CutSuffix(rule, "-torus")
	if base == "fridge" {
		for r := range g.size.Rows {
			for c := range g.size.Cols {
				if r == row || c == col {
					g.toggle(r, c)
				}
			}
		}
		return
	}
	pattern := map[string]string{"plus": "010/111/010", "king": "111/111/111", "x": "101/010/101"}[base]
	if pattern == "" {
		pattern = strings.TrimPrefix(base, "stencil:")
	}
	for dr, line := range strings.Split(pattern, "/") {
		for dc, cell := range line {
			if cell != '1' {
				continue
			}
			r, c := row+dr-1, col+dc-1
			if torus {
				r, c = (r+g.size.Rows)%g.size.Rows, (c+g.size.Cols)%g.size.Cols
			}
			if r >= 0 && r < g.size.Rows && c >= 0 && c < g.size.Cols {
				g.toggle(r, c)
			}
		}
	}
}

func (g grid) toggle(row, col int) {
	k := row*g.size.Cols + col
	g.cells[k] = !g.cells[k]
}

// runOf stores grids of one size as a run.
func runOf(grids []grid) puzzle.Run {
	run := puzzle.NewRun(grids[0].size, len(grids))
	for i, g := range grids {
		for k, on := range g.cells {
			if on {
				run.SetCell(i, k/g.size.Cols, k%g.size.Cols)
			}
		}
	}
	return run
}

func TestRunForms(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for _, size := range sizes {
		grids := []grid{randomGrid(rng, size), randomGrid(rng, size), randomGrid(rng, size)}
		run := runOf(grids)
		if err := run.Validate(); err != nil {
			t.Fatalf("%s: %v", size, err)
		}
		for i, g := range grids {
			if got := string(run.AppendText([]byte("before"), i)); got != "before"+g.text() {
				t.Errorf("%s board %d: text %s, want %s", size, i, got, g.text())
			}
			if got := run.AppendBits([]byte{7}, i); hex.EncodeToString(got) != "07"+hex.EncodeToString(g.bits()) {
				t.Errorf("%s board %d: bits %x, want 07%x", size, i, got, g.bits())
			}
			parsed, err := puzzle.ParseText(size, g.text())
			if err != nil {
				t.Fatal(err)
			}
			if got := string(parsed.AppendText(nil, 0)); got != g.text() {
				t.Errorf("%s: parsed %s, want %s", size, got, g.text())
			}
		}
	}
}

func TestPressAgainstCellByCell(t *testing.T) {
	rules := []string{
		"plus", "fridge", "king", "x", "plus-torus", "king-torus", "x-torus",
		"stencil:000/000/001", "stencil:100/000/000-torus", "stencil:110/001/010", "stencil:110/001/010-torus", "stencil:001/000/000",
	}
	rng := rand.New(rand.NewPCG(2, 2))
	for _, name := range rules {
		rule, err := puzzle.ParseRule(name)
		if err != nil {
			t.Fatal(err)
		}
		if rule.String() != name {
			t.Errorf("rule %s prints as %s", name, rule)
		}
		for _, size := range sizes {
			if rule.CheckSize(size) != nil {
				continue
			}
			boards := []grid{randomGrid(rng, size), randomGrid(rng, size)}
			presses := []grid{randomGrid(rng, size), randomGrid(rng, size)}
			run := runOf(boards)
			rule.Press(run, runOf(presses))
			if err := run.Validate(); err != nil {
				t.Fatalf("%s %s: %v", name, size, err)
			}
			for i := range boards {
				for k, on := range presses[i].cells {
					if on {
						boards[i].press(name, k/size.Cols, k%size.Cols)
					}
				}
				if got := string(run.AppendText(nil, i)); got != boards[i].text() {
					t.Errorf("%s %s board %d: %s, want %s", name, size, i, got, boards[i].text())
				}
			}
		}
	}
}

func TestValidateRun(t *testing.T) {
	bad := map[string]puzzle.Run{
		"masks missing":                    {Size: puzzle.Size{Rows: 2, Cols: 2}, Count: 2, Masks: make([]uint16, 3)},
		"cell outside":                     {Size: puzzle.Size{Rows: 1, Cols: 2}, Count: 1, Masks: []uint16{4}},
		"negative count":                   {Size: puzzle.Size{Rows: 1, Cols: 2}, Count: -1},
		"no rows":                          {Size: puzzle.Size{Cols: 2}},
		"both sides too long":              {Size: puzzle.Size{Rows: 65, Cols: 65}},
		"cell outside a line's first mask": {Size: puzzle.Size{Rows: 17, Cols: 17}, Count: 1, Masks: append([]uint16{0, 2}, make([]uint16, 32)...)},
	}
	for name, run := range bad {
		if run.Validate() == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

// TestLayoutOfWideBoards pins which mask and bit a cell is in: messages and digests
// depend on it.
func TestLayoutOfWideBoards(t *testing.T) {
	for _, c := range []struct {
		size      puzzle.Size
		row, col  int
		mask, bit int
	}{
		{puzzle.Size{Rows: 17, Cols: 17}, 0, 0, 0, 15}, {puzzle.Size{Rows: 17, Cols: 17}, 0, 16, 1, 0}, {puzzle.Size{Rows: 17, Cols: 17}, 2, 1, 4, 14},
		{puzzle.Size{Rows: 20, Cols: 36}, 1, 35, 35 * 2, 14}, {puzzle.Size{Rows: 36, Cols: 20}, 1, 19, 3, 0}, {puzzle.Size{Rows: 36, Cols: 20}, 1, 16, 3, 3},
		{puzzle.Size{Rows: 64, Cols: 256}, 63, 1, 7, 0}, {puzzle.Size{Rows: 16, Cols: 20}, 3, 1, 1, 12},
	} {
		run := puzzle.NewRun(c.size, 2)
		run.SetCell(1, c.row, c.col)
		if got := run.Masks[2*c.mask+1]; got != 1<<c.bit {
			t.Errorf("%s: cell %d,%d is not bit %d of mask %d: %b", c.size, c.row, c.col, c.bit, c.mask, run.Masks)
		}
		if !run.Cell(1, c.row, c.col) || run.Cell(0, c.row, c.col) {
			t.Errorf("%s: cell %d,%d is not where it was set", c.size, c.row, c.col)
		}
	}
}

// TestCheckSize: only fridge keeps to 16 cells.
func TestCheckSize(t *testing.T) {
	for _, name := range []string{"plus", "king-torus", "fridge"} {
		rule, err := puzzle.ParseRule(name)
		if err != nil {
			t.Fatal(err)
		}
		for size, want := range map[puzzle.Size]bool{
			{Rows: 16, Cols: 256}: true, {Rows: 256, Cols: 16}: true, {Rows: 17, Cols: 17}: name != "fridge", {Rows: 64, Cols: 256}: name != "fridge",
			{Rows: 65, Cols: 65}: false, {Rows: 2, Cols: 257}: false, {}: false,
		} {
			if err := rule.CheckSize(size); (err == nil) != want {
				t.Errorf("%s %s: %v", name, size, err)
			}
		}
	}
}

func TestParseRejectsWhatItDoesNotKnow(t *testing.T) {
	parsers := map[string]func(string) error{
		"size":    func(s string) error { _, err := puzzle.ParseSize(s); return err },
		"rule":    func(s string) error { _, err := puzzle.ParseRule(s); return err },
		"target":  func(s string) error { _, err := puzzle.ParseTarget(s); return err },
		"status":  func(s string) error { _, err := puzzle.ParseStatus(s); return err },
		"symbols": func(s string) error { _, err := puzzle.ParseSymbols(s); return err },
		"preset":  func(s string) error { _, err := puzzle.ParsePreset(s); return err },
	}
	bad := map[string][]string{
		"size":    {"", "5", "5x", "x5", "5x5x5", "5x 5", "-1x5", "+5x5", "0x3", "65x65", "257x1", "99999999999x1", "5X5"},
		"rule":    {"", "Plus", "plus-", "fridge-torus", "-torus", "stencil:", "stencil:000/000/000", "stencil:010/111", "stencil:010/111/01", "stencil:010/121/010", "stencil:0101/111/010"},
		"target":  {"", "all0", "Zero", "0"},
		"status":  {"", "Solved"},
		"symbols": {"", "b=1", "b=1,w=1", "b=1,b=0", "b=1,w=2", "bb=1,w=0", "b=1,w=0,x=1", "/=1,w=0", " =1,w=0", "b:1,w:0", "é=1,w=0"},
		"preset":  {"", "flipgame"},
	}
	for kind, texts := range bad {
		for _, text := range texts {
			err := parsers[kind](text)
			if err == nil {
				t.Errorf("%s %q: accepted", kind, text)
			} else if !strings.Contains(err.Error(), "want") && !strings.Contains(err.Error(), "a ") && !strings.Contains(err.Error(), "may have") {
				t.Errorf("%s %q: the error does not say what is expected: %v", kind, text, err)
			}
		}
	}
}

func TestPresetsAreConsistent(t *testing.T) {
	for _, p := range puzzle.Presets() {
		if _, err := puzzle.ParseRule(p.Rule); err != nil {
			t.Errorf("preset %s: %v", p.Name, err)
		}
		if s, err := puzzle.ParseSymbols(p.Symbols.String()); err != nil || s != p.Symbols {
			t.Errorf("preset %s: symbols %s read as %v, %v", p.Name, p.Symbols, s, err)
		}
		if got, err := puzzle.ParsePreset(p.Name); err != nil || got != p {
			t.Errorf("preset %s read as %v, %v", p.Name, got, err)
		}
	}
}

// TestDigestIsFixed pins the digest, which lives in datasets: a changed value
// would make every unfinished dataset look like another corpus's. The expected
// value was computed by a separate program from the documented layout.
func TestDigestIsFixed(t *testing.T) {
	chunk := puzzle.Chunk{
		First: 7,
		Spans: []puzzle.Span{{Source: "a.txt", Records: 2}, {Source: "b.txt", Records: 1}},
		Lines: []int64{1, 2, 1},
		Runs:  []puzzle.Run{{Size: puzzle.Size{Rows: 2, Cols: 3}, Count: 2, Masks: []uint16{1, 2, 3, 4}}},
		Rejects: []puzzle.Reject{
			{Index: 8, Reason: puzzle.RaggedRow, Detail: "row 2", Raw: []byte("01/0")},
		},
	}
	if got, want := chunk.Records(), 3; got != want {
		t.Errorf("records %d, want %d", got, want)
	}
	digest := chunk.Digest()
	if got := hex.EncodeToString(digest[:]); got != digestWant {
		t.Errorf("digest %s, want %s", got, digestWant)
	}
	chunk.Runs[0].Masks[3]++
	if chunk.Digest() == digest {
		t.Error("digest does not see a changed board")
	}
	chunk.Runs[0].Masks[3]--
	chunk.Labels = []puzzle.Labels{{Text: []byte("ab"), Ends: []uint32{1, 1, 2}}}
	labelled := chunk.Digest()
	if chunk.Labels[0].Ends[1]++; labelled == digest || chunk.Digest() == labelled {
		t.Error("digest does not see a changed label")
	}
}

const digestWant = "4860457bd6bc7895fa06e92ff8ad8ddc4cb744b249b6a573a97748f46bd4864f"

// TestDigestOfLongLists: however long its lists are, a chunk has the digest of the
// documented layout, written down number by number.
func TestDigestOfLongLists(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{0, 1, 3, 2047, 2048, 2049, 4095, 8191, 8192, 8193, 30_001} {
		c := puzzle.Chunk{First: 5, Spans: []puzzle.Span{{Source: "boards.txt", Records: n}}}
		run, narrow := puzzle.NewRun(puzzle.Size{Rows: 1, Cols: 9}, n), puzzle.NewRun(puzzle.Size{Rows: 1, Cols: 8}, n)
		var layout bytes.Buffer
		write := func(v any) {
			if err := binary.Write(&layout, binary.BigEndian, v); err != nil {
				t.Fatal(err)
			}
		}
		write([]int64{5, 1, int64(len("boards.txt"))})
		layout.WriteString("boards.txt")
		write([]int64{int64(n), int64(n)})
		for i := range n {
			c.Lines = append(c.Lines, int64((i+1)*(i+1)))
			write(int64(2*i + 1)) // the difference of two squares
		}
		write(int64(n))
		for range n {
			write(int64(1))
		}
		write([]int64{2, 1, 9, int64(n)})
		for i := range n {
			run.Masks[i] = uint16(rng.Uint32() & 0x1ff)
			layout.Write([]byte{byte(run.Masks[i]), byte(run.Masks[i] >> 8)})
		}
		write([]int64{1, 8, int64(n)})
		for i := range n {
			narrow.Masks[i] = uint16(rng.Uint32() & 0xff)
			layout.WriteByte(byte(narrow.Masks[i]))
		}
		write(int64(0))
		c.Runs = []puzzle.Run{run, narrow}
		if got := c.Digest(); got != sha256.Sum256(layout.Bytes()) {
			t.Errorf("%d boards: digest %x", n, got)
		}
	}
}
