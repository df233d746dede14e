package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"
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
		{[]string{"run", "examples/boards-5x5.txt"}, false, "\rrun 100% |", "{"},
		{[]string{"verify", "out/job=boards-5x5"}, false, "\rverify 100% |", "{"},
		{[]string{"generate", "all", "--size", "2x2"}, false, "\rgenerate 100% |", "0000"},
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
