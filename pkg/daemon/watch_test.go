package daemon

import (
	"context"
	"os"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

func TestPatience(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		signals := make(chan os.Signal)
		var ignored atomic.Int32
		drain, abort, stop := watch(t.Context(), time.Minute, signals, func() { ignored.Add(1) })
		defer stop()
		start := time.Now()
		signals <- syscall.SIGTERM
		<-drain.Done()
		if time.Since(start) != 0 || abort.Err() != nil || ignored.Load() != 0 {
			t.Errorf("after the signal: drained in %v, abort %v, ignored %d", time.Since(start), abort.Err(), ignored.Load())
		}
		<-abort.Done()
		if time.Since(start) != time.Minute || ignored.Load() != 1 {
			t.Errorf("aborted after %v, ignored %d, want one minute, 1", time.Since(start), ignored.Load())
		}
		if context.Cause(abort) != Signal(syscall.SIGTERM) {
			t.Errorf("cause is %v, want the signal", context.Cause(abort))
		}
	})
}

func TestSecondSignalCutsPatienceShort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		signals := make(chan os.Signal)
		drain, abort, stop := watch(t.Context(), time.Minute, signals, func() {})
		defer stop()
		start := time.Now()
		signals <- syscall.SIGTERM
		signals <- syscall.SIGINT
		<-abort.Done()
		if time.Since(start) != 0 {
			t.Errorf("aborted after %v, want at once", time.Since(start))
		}
		if context.Cause(drain) != Signal(syscall.SIGTERM) || context.Cause(abort) != Signal(syscall.SIGINT) {
			t.Errorf("causes are %v and %v", context.Cause(drain), context.Cause(abort))
		}
	})
}

func TestNoLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		signals := make(chan os.Signal)
		_, abort, stop := watch(t.Context(), 0, signals, func() {})
		signals <- syscall.SIGTERM
		limit, cancel := context.WithTimeout(t.Context(), 1000*time.Hour)
		defer cancel()
		<-limit.Done()
		if abort.Err() != nil {
			t.Error("aborted without a second signal")
		}
		stop()
		if context.Cause(abort) != context.Canceled {
			t.Errorf("cause is %v, want canceled", context.Cause(abort))
		}
	})
}
