package wire

import (
	"bytes"
	"encoding/hex"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/flipmill/flipmill/pkg/puzzle"
	"github.com/flipmill/flipmill/pkg/wire/internal/pb"
	"google.golang.org/protobuf/proto"
)

// Every Parse function undoes its Append function; cutting the bytes anywhere
// gives an error or a valid message, never a panic.
func TestRoundTrip(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 30 {
		task := randomTask(rng)
		roundTrip(t, task, AppendTask, ParseTask)
		parsed := reparse(t, task, AppendTask, ParseTask)
		if parsed.Chunk.Digest() != task.Chunk.Digest() {
			t.Fatal("a task's digest changed on the way")
		}
	}
	made := &Task{ID: ID{Job: "j"}, Chunk: puzzle.Chunk{First: 1 << 40, Generated: 1 << 16, Spans: []puzzle.Span{{Records: 1 << 16}}}}
	roundTrip(t, made, AppendTask, ParseTask)
	for _, r := range []*Result{
		{ID: ID{Job: "a"}, Boards: 1, Results: []byte("rows")},
		{ID: ID{Job: "a-1", Chunk: 7, Part: 1, Epoch: 3}, First: 700, Boards: 90, Rejected: 10, Digest: [32]byte{5}, Results: []byte("rows"), Rejects: []byte("more"), Tally: []byte("t")},
		{ID: ID{Job: "a"}, Failure: "no such rule"},
		{ID: ID{Job: "a"}, Failure: "a wrong answer"},
	} {
		roundTrip(t, r, AppendResult, ParseResult)
	}
	roundTrip(t, testJob(), AppendJob, ParseJob)
	roundTrip(t, &Job{ID: "b", Spec: puzzle.Spec{Rule: rule("fridge"), PartChunks: 1}}, AppendJob, ParseJob)
	roundTrip(t, testLedger(), AppendLedger, ParseLedger)
	roundTrip(t, &Ledger{State: Failed, Reason: "disk full"}, AppendLedger, ParseLedger)
	roundTrip(t, &Ledger{State: Cancelled}, AppendLedger, ParseLedger)
}

func roundTrip[T any](t *testing.T, v *T, appendTo func([]byte, *T) ([]byte, error), parse func([]byte) (*T, error)) {
	t.Helper()
	got := reparse(t, v, appendTo, parse)
	if !reflect.DeepEqual(got, v) {
		t.Fatalf("got  %+v\nwant %+v", got, v)
	}
	data, _ := appendTo([]byte("before"), v)
	data, ok := bytes.CutPrefix(data, []byte("before"))
	if !ok {
		t.Fatal("Append changed what was there")
	}
	for n := range data {
		stable(t, data[:n], appendTo, parse)
	}
}

func reparse[T any](t *testing.T, v *T, appendTo func([]byte, *T) ([]byte, error), parse func([]byte) (*T, error)) *T {
	t.Helper()
	data, err := appendTo(nil, v)
	if err != nil {
		t.Fatal(err)
	}
	got, err := parse(data)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// stable checks that whatever parses is written and read back unchanged, and
// does not refer to its input.
func stable[T any](t *testing.T, data []byte, appendTo func([]byte, *T) ([]byte, error), parse func([]byte) (*T, error)) {
	t.Helper()
	data = bytes.Clone(data)
	v, err := parse(data)
	if err != nil {
		return
	}
	first, err := appendTo(nil, v)
	if err != nil {
		t.Fatalf("what was parsed cannot be written: %v", err)
	}
	clear(data)
	again, err := parse(first)
	if err != nil {
		t.Fatalf("what was written cannot be parsed: %v", err)
	}
	second, err := appendTo(nil, again)
	if err != nil || !bytes.Equal(first, second) {
		t.Fatalf("unstable: %x, then %x (%v)", first, second, err)
	}
	third, err := appendTo(nil, v)
	if err != nil || !bytes.Equal(first, third) {
		t.Fatal("the parsed value refers to its input")
	}
}

// The bytes of one task, written out by hand from flipmill.proto: a field is
// number<<3|type (0 varint, 2 length-delimited), zigzag for sint64.
func TestTaskBytes(t *testing.T) {
	run := puzzle.NewRun(puzzle.Size{Rows: 1, Cols: 2}, 2) // boards "10" and "11"
	copy(run.Masks, []uint16{2, 3})
	task := &Task{
		ID: ID{Job: "j", Chunk: 3, Part: 1, Epoch: 2},
		Chunk: puzzle.Chunk{
			First:   300,
			Spans:   []puzzle.Span{{Source: "f", Records: 3}},
			Lines:   []int64{5, 6, 7},
			Runs:    []puzzle.Run{run},
			Rejects: []puzzle.Reject{{Index: 301, Reason: "bad", Detail: "d", Raw: []byte{0xff}}},
			Labels:  []puzzle.Labels{{Text: []byte("abc"), Ends: []uint32{2, 2, 3}}, {Ends: []uint32{0, 0, 0}}},
		},
	}
	want := strings.Join([]string{
		"0a016a",                         // job "j"
		"1003",                           // chunk 3
		"1801",                           // part 1
		"2002",                           // epoch 2
		"2a3b",                           // content, 59 bytes
		"08ac02",                         // first 300
		"1205",                           // span
		"0a01661003",                     // source "f", records 3
		"1a020a02",                       // line steps +5, +1
		"22020102",                       // taken once, twice
		"2a0a",                           // run
		"08011002" + "1802" + "22020203", // 1 row, 2 cols, 2 boards, masks
		"320d",                           // reject
		"0801" + "1203626164" + "1a0164" + "2201ff", // offset, reason, detail, raw
		"3a0a" + "0a03616263" + "1203020001",        // ids: text, lengths
		"3a00",                                      // a kept column without values
	}, "")
	got, err := AppendTask(nil, task)
	if err != nil {
		t.Fatal(err)
	}
	if hex.EncodeToString(got) != want {
		t.Errorf("got  %x\nwant %s", got, want)
	}
}

func TestSumPart(t *testing.T) {
	// (printf 'a%.0s' {1..32}; printf 'b%.0s' {1..32}) | sha256sum
	chunks := [][32]byte{[32]byte(bytes.Repeat([]byte("a"), 32)), [32]byte(bytes.Repeat([]byte("b"), 32))}
	if got, want := hexOf(SumPart(chunks)), "fdd2a64d014f2c406d2ece67c23212a9"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestSumParts(t *testing.T) {
	// (printf 'a%.0s' {1..16}; printf 'b%.0s' {1..16}) | sha256sum
	parts := []Part{{Digest: [16]byte(bytes.Repeat([]byte("a"), 16))}, {Number: 1, Digest: [16]byte(bytes.Repeat([]byte("b"), 16))}}
	sum := SumParts(parts)
	if got, want := hex.EncodeToString(sum[:]), "abf8fedeb2a96ae182e858f521512f703b5de5c40a63ed13980e46a2fa6d996e"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func hexOf(b [PartDigestSize]byte) string { return hex.EncodeToString(b[:]) }

func TestIDString(t *testing.T) {
	if got := (ID{Job: "j", Chunk: 12, Part: 1, Epoch: 4}).String(); got != "j/12/4" {
		t.Error(got)
	}
	for _, id := range []ID{{}, {Job: "j", Chunk: -1}, {Job: "j", Chunk: 1, Part: 2}, {Job: "j", Part: -1}} {
		if _, err := AppendTask(nil, &Task{ID: id}); err == nil {
			t.Errorf("a task with id %+v is written", id)
		}
		if _, err := AppendResult(nil, &Result{ID: id}); err == nil {
			t.Errorf("a result with id %+v is written", id)
		}
	}
}

// Each change makes a valid task invalid.
func TestParseTaskRefuses(t *testing.T) {
	refuses(t, testTask(), AppendTask, ParseTask, map[string]func(*pb.Task){
		"job id":                  func(m *pb.Task) { m.Job = "A" },
		"part after chunk":        func(m *pb.Task) { m.Part = m.Chunk + 1 },
		"negative chunk":          func(m *pb.Task) { m.Chunk = -1 },
		"no content":              func(m *pb.Task) { m.Content = nil },
		"no records":              func(m *pb.Task) { m.Content = &pb.Chunk{} },
		"negative first":          func(m *pb.Task) { m.Content.First = -1 },
		"first overflows":         func(m *pb.Task) { m.Content.First = math.MaxInt64 },
		"spans too short":         func(m *pb.Task) { m.Content.Spans[0].Records-- },
		"spans too long":          func(m *pb.Task) { m.Content.Spans[0].Records++ },
		"negative span":           func(m *pb.Task) { m.Content.Spans[0].Records = -1 },
		"spans overflow":          func(m *pb.Task) { m.Content.Spans[0].Records = math.MaxInt64 },
		"no spans":                func(m *pb.Task) { m.Content.Spans = nil },
		"size 0":                  func(m *pb.Task) { m.Content.Runs[0].Rows = 0 },
		"size too large":          func(m *pb.Task) { m.Content.Runs[0].Rows, m.Content.Runs[0].Cols = 65, 65 },
		"size huge":               func(m *pb.Task) { m.Content.Runs[0].Rows = math.MaxUint32 },
		"count too large":         func(m *pb.Task) { m.Content.Runs[0].Count = math.MaxUint32 },
		"masks too short":         func(m *pb.Task) { m.Content.Runs[0].Masks = m.Content.Runs[0].Masks[1:] },
		"cell outside":            func(m *pb.Task) { m.Content.Runs[0].Masks[1] = 0x80 },
		"line steps alone":        func(m *pb.Task) { m.Content.LineCounts = nil },
		"line counts alone":       func(m *pb.Task) { m.Content.LineSteps = nil },
		"lines too few":           func(m *pb.Task) { m.Content.LineCounts[1]-- },
		"lines too many":          func(m *pb.Task) { m.Content.LineCounts[1]++ },
		"line count 0":            func(m *pb.Task) { m.Content.LineCounts[0] = 0 },
		"line count overflows":    func(m *pb.Task) { m.Content.LineCounts[0] = math.MaxInt64 },
		"line 0":                  func(m *pb.Task) { m.Content.LineSteps[0] = 0 },
		"line overflows":          func(m *pb.Task) { m.Content.LineSteps[1] = math.MaxInt64 },
		"reject negative":         func(m *pb.Task) { m.Content.Rejects[0].Offset = -1 },
		"reject outside":          func(m *pb.Task) { m.Content.Rejects[0].Offset = 3 },
		"rejects do not ascend":   func(m *pb.Task) { m.Content.Rejects[0].Offset = m.Content.Rejects[1].Offset },
		"reject without a reason": func(m *pb.Task) { m.Content.Rejects[0].Reason = "" },
		"reject reason":           func(m *pb.Task) { m.Content.Rejects[0].Reason = "a b" },
		"label outside":           func(m *pb.Task) { m.Content.Labels[0].Lengths[2]++ },
		"label text too long":     func(m *pb.Task) { m.Content.Labels[0].Lengths[2]-- },
		"label not UTF-8":         func(m *pb.Task) { m.Content.Labels[0].Text[1] = 'x' },
		"label length overflows":  func(m *pb.Task) { m.Content.Labels[0].Lengths[2] = math.MaxUint32 },
		"labels of other records": func(m *pb.Task) { m.Content.Labels[0].Lengths = m.Content.Labels[0].Lengths[:2] },
		"labels without lengths":  func(m *pb.Task) { m.Content.Labels[0].Lengths = nil },
		"too many labels":         func(m *pb.Task) { m.Content.Labels = make([]*pb.Labels, puzzle.MaxKeep+2) },
		"label too long": func(m *pb.Task) {
			m.Content.Labels[0] = &pb.Labels{Text: make([]byte, puzzle.MaxLabel+1), Lengths: []uint32{puzzle.MaxLabel + 1, 0, 0}}
		},
		"boards among generated": func(m *pb.Task) {
			m.Content.Generated, m.Content.Spans[0].Records = 1, 4
			m.Content.LineSteps, m.Content.LineCounts, m.Content.Labels = nil, nil, nil
		},
		"negative generated": func(m *pb.Task) {
			m.Content = &pb.Chunk{Generated: -1, Spans: []*pb.Span{{Records: -1}}}
		},
		"too many generated": func(m *pb.Task) {
			m.Content = &pb.Chunk{Generated: 1<<16 + 1, Spans: []*pb.Span{{Records: 1<<16 + 1}}}
		},
		"generated with lines": func(m *pb.Task) {
			m.Content = &pb.Chunk{Generated: 1, Spans: []*pb.Span{{Records: 1}}, LineSteps: []int64{1}, LineCounts: []int64{1}}
		},
		"generated overflow": func(m *pb.Task) {
			m.Content = &pb.Chunk{First: math.MaxInt64, Generated: 1, Spans: []*pb.Span{{Records: 1}}}
		},
		"reject raw too long": func(m *pb.Task) { m.Content.Rejects[0].Raw = make([]byte, puzzle.MaxRaw+1) },
	})
}

func TestParseResultRefuses(t *testing.T) {
	r := &Result{ID: ID{Job: "j", Chunk: 1}, Boards: 2, Rejected: 1, Results: []byte("r"), Rejects: []byte("x")}
	refuses(t, r, AppendResult, ParseResult, map[string]func(*pb.Result){
		"job id":            func(m *pb.Result) { m.Job = "" },
		"no outcome":        func(m *pb.Result) { m.Outcome = nil },
		"silent failure":    func(m *pb.Result) { m.Outcome = &pb.Result_Failure{Failure: &pb.Failure{}} },
		"no records":        func(m *pb.Result) { m.GetSolved().Boards, m.GetSolved().Rejected = 0, 0 },
		"negative boards":   func(m *pb.Result) { m.GetSolved().Boards = -1 },
		"records overflow":  func(m *pb.Result) { m.GetSolved().Boards = math.MaxInt64 },
		"first overflows":   func(m *pb.Result) { m.GetSolved().First = math.MaxInt64 },
		"no digest":         func(m *pb.Result) { m.GetSolved().Digest = nil },
		"results altered":   func(m *pb.Result) { m.GetSolved().Results[0]++ },
		"rejects altered":   func(m *pb.Result) { m.GetSolved().Rejects[0]++ },
		"rejects lost":      func(m *pb.Result) { m.GetSolved().Rejects, m.GetSolved().RejectsSha256 = nil, sha(nil) },
		"checksum too long": func(m *pb.Result) { m.GetSolved().ResultsSha256 = make([]byte, 33) },
	})
}

func TestParseJobRefuses(t *testing.T) {
	refuses(t, testJob(), AppendJob, ParseJob, map[string]func(*pb.Job){
		"id":                    func(m *pb.Job) { m.Id = "x.ledger" },
		"no spec":               func(m *pb.Job) { m.Spec = nil },
		"rule":                  func(m *pb.Job) { m.Spec.Rule = "minus" },
		"target":                func(m *pb.Job) { m.Spec.Target = "two" },
		"symbols":               func(m *pb.Job) { m.Spec.Symbols = "a=1,a=0" },
		"half a size":           func(m *pb.Job) { m.Spec.Rows = 0 },
		"size":                  func(m *pb.Job) { m.Spec.Rows, m.Spec.Cols = 65, 65 },
		"search limit":          func(m *pb.Job) { m.Spec.SearchLimit = -1 },
		"generate":              func(m *pb.Job) { m.Spec.Generate = "every" },
		"frame":                 func(m *pb.Job) { m.Spec.Frame = "picture" },
		"fields":                func(m *pb.Job) { m.Spec.Fields = "level=x" },
		"longest line":          func(m *pb.Job) { m.Spec.MaxLine = -1 },
		"no part chunks":        func(m *pb.Job) { m.Spec.PartChunks = 0 },
		"negative records":      func(m *pb.Job) { m.Totals.Records = -1 },
		"more chunks":           func(m *pb.Job) { m.Totals.Chunks = m.Totals.Records + 1 },
		"corpus digest":         func(m *pb.Job) { m.Totals.CorpusSha256 = nil },
		"parts digest":          func(m *pb.Job) { m.Totals.PartsSha256 = m.Totals.PartsSha256[1:] },
		"source digest":         func(m *pb.Job) { m.Totals.Sources[0].Sha256 = []byte{1} },
		"no window":             func(m *pb.Job) { m.Origin.Window = 0 },
		"source of minus bytes": func(m *pb.Job) { m.Totals.Sources[0].Bytes = -1 },
	})
}

func TestParseLedgerRefuses(t *testing.T) {
	refuses(t, testLedger(), AppendLedger, ParseLedger, map[string]func(*pb.Ledger){
		"no state":             func(m *pb.Ledger) { m.State = 0 },
		"state":                func(m *pb.Ledger) { m.State = 5 },
		"negative part":        func(m *pb.Ledger) { m.PartDeltas[0] = -1 },
		"parts twice":          func(m *pb.Ledger) { m.PartDeltas[1] = 0 },
		"parts overflow":       func(m *pb.Ledger) { m.PartDeltas[1] = math.MaxInt64; m.PartDeltas[2] = 2 },
		"digests too short":    func(m *pb.Ledger) { m.PartDigests = m.PartDigests[1:] },
		"negative records":     func(m *pb.Ledger) { m.Received.Records = -1 },
		"more chunks":          func(m *pb.Ledger) { m.Committed.Chunks = m.Committed.Records + 1 },
		"negative retryable":   func(m *pb.Ledger) { m.Retryable = -1 },
		"a negative committed": func(m *pb.Ledger) { m.Committed.Chunks = -1 },
		"a long output":        func(m *pb.Ledger) { m.Output = strings.Repeat("x", maxOutput+1) },
		"a long holder":        func(m *pb.Ledger) { m.Holder = strings.Repeat("x", maxHolder+1) },
	})
}

// refuses applies each change to the message of v and expects an error.
func refuses[T any, M any, P interface {
	*M
	proto.Message
}](t *testing.T, v *T, appendTo func([]byte, *T) ([]byte, error), parse func([]byte) (*T, error), changes map[string]func(P)) {
	data, err := appendTo(nil, v)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := parse(data); err != nil {
		t.Fatal(err)
	}
	for name, change := range changes {
		m := P(new(M))
		if err := proto.Unmarshal(data, m); err != nil {
			t.Fatal(err)
		}
		change(m)
		changed, err := proto.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := parse(changed); err == nil {
			t.Errorf("%s: passes", name)
		} else if !strings.HasPrefix(err.Error(), "decode ") {
			t.Errorf("%s: the error does not say what was being done: %v", name, err)
		}
	}
}

func TestLedgerParts(t *testing.T) {
	for _, c := range []struct {
		parts  []int64
		oldest int64
	}{{nil, 0}, {[]int64{0}, 1}, {[]int64{1}, 0}, {[]int64{0, 1, 2}, 3}, {[]int64{0, 1, 5, 6}, 2}} {
		var l Ledger
		for _, n := range c.parts {
			l.Parts = append(l.Parts, Part{Number: n})
		}
		if got := l.Oldest(); got != c.oldest {
			t.Errorf("oldest of %v is %d, want %d", c.parts, got, c.oldest)
		}
	}
	l := testLedger()
	if p, ok := l.Part(4); !ok || p.Digest != l.Parts[2].Digest {
		t.Errorf("part 4: %v, %v", p, ok)
	}
	if _, ok := l.Part(2); ok {
		t.Error("part 2 is not committed")
	}
}

// A message that is for people must get through whatever it quotes.
func TestTextIsMadeValid(t *testing.T) {
	r := reparse(t, &Result{ID: ID{Job: "j"}, Failure: "read \xff"}, AppendResult, ParseResult)
	l := reparse(t, &Ledger{State: Failed, Reason: "read \xff"}, AppendLedger, ParseLedger)
	if r.Failure != "read \uFFFD" || l.Reason != "read \uFFFD" {
		t.Errorf("%q, %q", r.Failure, l.Reason)
	}
}

// TestMaskBytes: a mask is one byte where 8 cells are a line and two where there are
// more, the lower byte first, and as many boards come out as went in.
func TestMaskBytes(t *testing.T) {
	for _, size := range []puzzle.Size{{Rows: 1, Cols: 1}, {Rows: 8, Cols: 8}, {Rows: 3, Cols: 40}, {Rows: 9, Cols: 9}, {Rows: 16, Cols: 16}, {Rows: 40, Cols: 10}} {
		for count := range 20 {
			run := puzzle.NewRun(size, count)
			var want []byte
			for i := range run.Masks {
				mask := uint16(i*40503) & (1<<size.Width() - 1)
				run.Masks[i] = mask
				if want = append(want, byte(mask)); size.Width() > 8 {
					want = append(want, byte(mask>>8))
				}
			}
			got := puzzle.AppendMasks(nil, run.Masks, size.MaskBytes())
			if !bytes.Equal(got, want) {
				t.Errorf("%d boards of %s: bytes %x, want %x", count, size, got, want)
			}
			if back := appendMasks(nil, size, got); !slices.Equal(back, run.Masks) {
				t.Errorf("%d boards of %s: masks %x, want %x", count, size, back, run.Masks)
			}
		}
	}
}

// TestParseAgain: a task that is read into the memory of another one has nothing of
// it, whichever of them is longer.
func TestParseAgain(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	var again Task
	for range 200 {
		data, err := AppendTask(nil, randomTask(rng))
		if err != nil {
			t.Fatal(err)
		}
		fresh, err := ParseTask(data)
		if err != nil {
			t.Fatal(err)
		}
		if err := again.Parse(data); err != nil {
			t.Fatal(err)
		}
		back, err := AppendTask(nil, &again)
		if err != nil || !bytes.Equal(back, data) || again.Chunk.Digest() != fresh.Chunk.Digest() {
			t.Fatalf("%v: read again as %+v, want %+v", err, again, fresh)
		}
	}
}
