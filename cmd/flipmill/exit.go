package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/flipmill/flipmill/pkg/queue"
)

// code is the status with which the process ends.
type code int

// The exit codes. They are part of the interface: scripts test them.
const (
	exitOK           code = 0
	exitError        code = 1
	exitUsage        code = 2
	exitConfig       code = 3
	exitBroker       code = 4
	exitRejects      code = 5
	exitJobFailed    code = 6
	exitTimeout      code = 7
	exitNotFound     code = 8
	exitVerifyFailed code = 9
	exitInterrupted  code = 130
	exitTerminated   code = 143
)

// exitTable says what each code means, for the help and the README.
var exitTable = [...]struct {
	code    code
	meaning string
}{
	{exitOK, "done"},
	{exitError, "an error, told on standard error"},
	{exitUsage, "the command line is wrong"},
	{exitConfig, "the configuration is wrong"},
	{exitBroker, "the broker cannot be reached, or denies permission"},
	{exitRejects, "the job finished with rejects, and --strict was given"},
	{exitJobFailed, "the job failed or was cancelled"},
	{exitTimeout, "wait: the time is up and the job has not ended"},
	{exitNotFound, "there is no such job, or no such row in the dataset"},
	{exitVerifyFailed, "verify found the dataset wrong"},
	{exitInterrupted, "interrupted (Ctrl-C)"},
	{exitTerminated, "terminated (SIGTERM)"},
}

// exitHelp renders exitTable.
func exitHelp() string {
	var b strings.Builder
	b.WriteString("Exit codes:\n")
	for _, row := range exitTable {
		fmt.Fprintf(&b, "  %3d  %s\n", row.code, row.meaning)
	}
	return b.String()
}

// exitErr is an error that ends the process with a code of its own.
type exitErr struct {
	code code
	err  error
}

func (e *exitErr) Error() string { return e.err.Error() }
func (e *exitErr) Unwrap() error { return e.err }

// withCode gives an error, if there is one, its exit code.
func withCode(c code, err error) error {
	if err == nil {
		return nil
	}
	return &exitErr{c, err}
}

// exitCode is the one place where an error becomes a code.
func exitCode(err error) code {
	if err == nil {
		return exitOK
	}
	if e, ok := errors.AsType[*exitErr](err); ok {
		return e.code
	}
	for _, broker := range []error{queue.ErrUnreachable, queue.ErrDenied, queue.ErrClosed} {
		if errors.Is(err, broker) {
			return exitBroker
		}
	}
	return exitError
}
