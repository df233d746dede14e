package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"
	"unsafe"
)

// terminal returns both ends of a terminal: what is written to the second can be
// read from the first.
func terminal(t *testing.T) (master, slave *os.File) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { master.Close() })
	var unlock, number int32
	for request, arg := range map[uintptr]*int32{syscall.TIOCSPTLCK: &unlock, syscall.TIOCGPTN: &number} {
		if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, master.Fd(), request, uintptr(unsafe.Pointer(arg))); errno != 0 {
			t.Fatal(errno)
		}
	}
	if slave, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { slave.Close() })
	return master, slave
}

// On a terminal, progress is a bar; where the boards themselves go to it, it is
// not in their way.
func TestProgressOnTerminal(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	linkExamples(t, dir)
	for _, c := range []struct {
		args   []string
		stdout bool // is the terminal, too
		want   string
		not    string
	}{
		{[]string{"run", "examples/boards-5x5.txt"}, false, "|  run: 10,000 of 10,000 records, ", "{"},
		{[]string{"verify", "out/job=boards-5x5"}, false, "|  verify: 10,000 of 10,000 records, ", "{"},
		{[]string{"generate", "all", "--size", "2x2"}, false, "|  generate: 16 of 16 boards, ", "0000"},
		{[]string{"generate", "all", "--size", "2x2"}, true, "0000\r\n", "generate"},
	} {
		master, slave := terminal(t)
		cmd := command(t, dir, c.args...)
		cmd.Stderr = slave
		if c.stdout {
			cmd.Stdout = slave
		}
		read := make(chan []byte, 1)
		go func() {
			text, _ := io.ReadAll(master) // the end is an error: nobody has the other end
			read <- text
		}()
		err := cmd.Run()
		slave.Close()
		text := string(<-read)
		if err != nil {
			t.Fatalf("%v: %v\n%s", c.args, err, text)
		}
		if !strings.Contains(text, c.want) || strings.Contains(text, c.not) {
			t.Errorf("%v: %q, want %q and no %q", c.args, text, c.want, c.not)
		}
		if !bytes.HasSuffix([]byte(text), []byte("\n")) {
			t.Errorf("%v: %q leaves the cursor in the line", c.args, text)
		}
	}
}

// However narrow the terminal is, a bar takes one line of it: what were longer would
// leave a line behind each time it is drawn. Of a pipe, whose end nobody knows, it
// does not say that all is done.
func TestProgressFitsTerminal(t *testing.T) {
	t.Parallel()
	for _, columns := range []int{20, 40, 60, 80, 200} {
		for _, total := range []int64{0, 6_000_000} {
			master, slave := terminal(t)
			size := [4]uint16{24, uint16(columns)}
			if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, master.Fd(), syscall.TIOCSWINSZ, uintptr(unsafe.Pointer(&size))); errno != 0 {
				t.Fatal(errno)
			}
			m := newMeter("generate", "records", func() (int64, bool) { return total, false })
			bar := m.bar(slave)
			for _, done := range []int64{1, 1_234_567, 5_999_999, 6_000_000} {
				m.done.Store(done)
				m.move(bar, slave, 7*time.Minute, done == 6_000_000)
			}
			slave.Close()
			text, _ := io.ReadAll(master) // the end is an error: nobody has the other end
			if !bytes.Contains(text, []byte("generate")) || bytes.Contains(text, []byte("100%")) != (total > 0) {
				t.Errorf("%d columns, total %d: %q", columns, total, text)
			}
			for line := range strings.SplitSeq(string(text), "\r") {
				if n := utf8.RuneCountInString(line); n > columns {
					t.Errorf("%d columns, %d in %q", columns, n, line)
				}
			}
		}
	}
}
