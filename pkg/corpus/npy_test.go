package corpus_test

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/flipmill/flipmill/pkg/corpus"
	"github.com/flipmill/flipmill/pkg/puzzle"
)

// npyFile writes an array as numpy.lib.format describes it.
func npyFile(version int, descr string, fortran bool, shape []int, values []int) string {
	order := map[bool]string{false: "False", true: "True"}[fortran]
	header := fmt.Sprintf("{'descr': '%s', 'fortran_order': %s, 'shape': (%s), }", descr, order, strings.Trim(strings.ReplaceAll(fmt.Sprint(shape), " ", ", "), "[]"))
	header += strings.Repeat(" ", 63-(10+len(header))%64) + "\n"
	out := fmt.Appendf(nil, "\x93NUMPY%c\x00", version)
	if version == 1 {
		out = binary.LittleEndian.AppendUint16(out, uint16(len(header)))
	} else {
		out = binary.LittleEndian.AppendUint32(out, uint32(len(header)))
	}
	out = append(out, header...)
	for _, v := range values {
		number := binary.LittleEndian.AppendUint64(nil, uint64(v))[:descr[2]-'0']
		if descr[0] == '>' {
			slices.Reverse(number)
		}
		out = append(out, number...)
	}
	return string(out)
}

// TestNPY reads random boards of every type, byte order and shape.
func TestNPY(t *testing.T) {
	rng := rand.New(rand.NewPCG(6, 1))
	for _, descr := range []string{"|b1", "|u1", "|i1", "<u2", ">i2", "<i4", ">u4", "<i8", ">i8"} {
		for shape := range 8 {
			fortran, flat, version := shape&1 != 0, shape&2 != 0, 1+shape/4*2
			n, rows, cols := 1+rng.IntN(50), 1+rng.IntN(9), 1+rng.IntN(20)
			values := make([]int, n*rows*cols)
			var want []string
			for i := range n {
				var text []byte
				for r := range rows {
					for c := range cols {
						v := rng.IntN(2)
						text = append(text, byte('0'+v))
						at := (i*rows+r)*cols + c
						if fortran && flat {
							at = i + n*(r*cols+c)
						} else if fortran {
							at = i + n*(r+rows*c)
						}
						values[at] = v
					}
				}
				want = append(want, fmt.Sprintf("%d %dx%d %s", i+1, rows, cols, text))
			}
			opts, dims := corpus.Options{}, []int{n, rows, cols}
			if flat {
				opts.Size, dims = puzzle.Size{Rows: rows, Cols: cols}, []int{n, rows * cols}
			}
			path := writeFile(t, "boards.npy", npyFile(version, descr, fortran, dims, values))
			c, err := corpus.Open(t.Context(), []string{path}, opts, nil)
			if err != nil {
				t.Fatalf("%s, %d: %v", descr, shape, err)
			}
			if shown, _ := drain(t, c); !slices.Equal(shown, want) || c.Format() != corpus.NPY || len(c.Sources()) != 1 {
				t.Errorf("%s, %d: %d records, want %d", descr, shape, len(shown), n)
			}
			if print, err := corpus.Fingerprint(t.Context(), []string{path}, nil); err != nil || !slices.Equal(print, c.Sources()) {
				t.Errorf("%s, %d: fingerprint %v, want %v, %v", descr, shape, c.Sources(), print, err)
			}
		}
	}
}

// TestNPYByNumPy reads what NumPy has saved: cell k of the array is
// (k*7919+13) % 101 % 2.
func TestNPYByNumPy(t *testing.T) {
	var want []string
	for i := range 5 {
		var text strings.Builder
		for k := i * 12; k < i*12+12; k++ {
			text.WriteString(fmt.Sprint((k*7919 + 13) % 101 % 2))
		}
		want = append(want, fmt.Sprintf("%d 3x4 %s", i+1, text.String()))
	}
	for _, name := range []string{"int32", "bool-fortran", "int16-flat", "uint8-flat-fortran"} {
		c, err := corpus.Open(t.Context(), []string{"testdata/" + name + ".npy"}, corpus.Options{Size: puzzle.Size{Rows: 3, Cols: 4}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if shown, _ := drain(t, c); !slices.Equal(shown, want) {
			t.Errorf("%s: %q, want %q", name, shown, want)
		}
	}
}

// TestNPYTold: without a name the magic tells, also compressed.
func TestNPYTold(t *testing.T) {
	text := npyFile(1, "|u1", false, []int{2, 1, 2}, []int{0, 1, 1, 1})
	for name, in := range pieces(gzipped(text)) {
		if shown, _, err := readAll(t, in, corpus.Options{}); err != nil || !slices.Equal(shown, []string{"1 1x2 01", "2 1x2 11"}) {
			t.Errorf("%s: %q, %v", name, shown, err)
		}
	}
	byColumns := corpus.Options{Size: puzzle.Size{Rows: 2, Cols: 2}, ColumnMajor: true}
	shown, _, err := readAll(t, strings.NewReader(npyFile(1, "|u1", false, []int{1, 4}, []int{0, 1, 0, 0})), byColumns)
	if err != nil || !slices.Equal(shown, []string{"1 2x2 0010"}) {
		t.Errorf("column by column: %q, %v", shown, err)
	}
}

// TestNPYFaults: numbers that are no cells cost their record, the end of the file
// all that are missing; a header that fits no boards is an error.
func TestNPYFaults(t *testing.T) {
	good := npyFile(1, "<i2", false, []int{3, 1, 2}, []int{0, 1, 2, 1, 257, 0})
	shown, raws, err := readAll(t, strings.NewReader(good+"more"), corpus.Options{})
	want := []string{"1 1x2 01", "2 unknown_symbol number 1 of the record, bytes 0200, is not 0 or 1",
		"3 unknown_symbol number 1 of the record, bytes 0101, is not 0 or 1", "4 bad_syntax bytes behind the 3 records of the array"}
	if err != nil || !slices.Equal(shown, want) || !slices.Equal(raws, []string{"02000100", "01010000", "more"}) {
		t.Errorf("%q %q, %v", shown, raws, err)
	}
	cut, _, err := readAll(t, strings.NewReader(good[:len(good)-7]), corpus.Options{})
	want = []string{"1 1x2 01", "2 truncated the source ends after 1 of the 4 bytes of the record, and 1 of 3 records"}
	if err != nil || !slices.Equal(cut, want) {
		t.Errorf("cut: %q, %v", cut, err)
	}
	sized := corpus.Options{Format: corpus.NPY, Size: puzzle.Size{Rows: 1, Cols: 2}}
	for text, want := range map[string]string{
		"hello, this is no array": "does not begin as a file of NumPy does",
		good[:40]:                 "cut off within its header",
		npyFile(1, "<f4", false, []int{1, 1, 2}, nil):     "numbers of type \"<f4\"",
		npyFile(1, "|u1", false, []int{2}, nil):           "want fortran_order, and a shape",
		npyFile(1, "|u1", false, []int{1, 3}, nil):        "boards of 3 cells, want 2 for 1x2",
		npyFile(1, "|u1", false, []int{1, 2, 2}, nil):     "boards of 2x2, want 1x2",
		npyFile(1, "|u1", false, []int{1 << 50, 2}, nil):  "value out of range",
		npyFile(1, "|u1", true, []int{1, 2}, []int{0, 1}): "Fortran order, which can be read from a plain file only",
		"\x93NUMPY\x02\x00\xff\xff\xff\x7f":               "a header of 2147483647 bytes",
	} {
		if _, _, err := readAll(t, strings.NewReader(text), sized); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.30q: %v, want %s", text, err, want)
		}
	}
	path := writeFile(t, "cut.npy", npyFile(1, "|u1", true, []int{3, 2}, []int{0, 1}))
	if _, err := corpus.Open(t.Context(), []string{path}, sized, nil); err == nil || !strings.Contains(err.Error(), "it is cut off") {
		t.Errorf("Fortran order, cut: %v", err)
	}
	huge, _, err := readAll(t, strings.NewReader(npyFile(1, "|u1", false, []int{1 << 40, 2}, []int{0, 1})), sized)
	if err != nil || len(huge) != 2 {
		t.Errorf("a shape larger than the file: %q, %v", huge, err)
	}
}

// FuzzNPY: no bytes do harm, and in pieces they are the same records.
func FuzzNPY(f *testing.F) {
	f.Add(npyFile(1, "<i2", false, []int{3, 1, 2}, []int{0, 1, 2, 1, 257, 0}), uint8(0))
	f.Add(npyFile(3, "|u1", false, []int{2, 4}, []int{0, 1, 1, 1, 0, 0, 0, 0}), uint8(2))
	f.Add(npyFile(2, ">i8", true, []int{2, 4}, []int{0, 1, 1, 1, 0, 0, 0, 0}), uint8(2))
	path := filepath.Join(f.TempDir(), "boards.npy") // where Fortran order can be read, too
	f.Fuzz(func(t *testing.T, text string, side uint8) {
		opts := corpus.Options{Format: corpus.NPY, Size: puzzle.Size{Rows: int(side % 5), Cols: int(side % 5)}}
		shown, raws, err := readAll(t, strings.NewReader(text), opts)
		again, rawsAgain, againErr := readAll(t, &oneByte{text}, opts)
		if fmt.Sprint(err) != fmt.Sprint(againErr) || !slices.Equal(shown, again) || !slices.Equal(raws, rawsAgain) {
			t.Errorf("%q %v, but in single bytes %q %v", shown, err, again, againErr)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if c, err := corpus.Open(t.Context(), []string{path}, opts, nil); err == nil {
			drain(t, c)
			c.Close()
		}
	})
}
