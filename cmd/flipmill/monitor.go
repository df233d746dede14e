package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/flipmill/flipmill/pkg/daemon"
	"github.com/flipmill/flipmill/pkg/pages"
	"github.com/flipmill/flipmill/pkg/queue"
)

// standstill is how long the loop of an aggregator may take for one turn. A part
// takes seconds, on the slowest disks a minute.
const standstill = 5 * time.Minute

// monitor is what a process shows of itself over HTTP.
type monitor struct {
	registry *prometheus.Registry
	patience time.Duration             // how long the role may say nothing; 0: for ever
	worked   atomic.Pointer[time.Time] // when it last said that it works; nil: it cannot yet
	conn     *queue.Conn               // set before anybody can ask
}

func newMonitor(patience time.Duration) *monitor {
	m := &monitor{registry: prometheus.NewRegistry(), patience: patience}
	m.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	promauto.With(m.registry).NewGauge(prometheus.GaugeOpts{
		Name: "flipmill_build_info", Help: "1; the labels say what this program is.",
		ConstLabels: prometheus.Labels{"version": release(), "goversion": runtime.Version()},
	}).Set(1)
	promauto.With(m.registry).NewGaugeFunc(prometheus.GaugeOpts{
		Name: "flipmill_broker_connected", Help: "1 while the broker is connected, 0 while it is away.",
	}, func() float64 {
		if m.conn.Connected() {
			return 1
		}
		return 0
	})
	return m
}

// works notes that the role is at work: streams and consumers are there.
func (m *monitor) works() {
	now := time.Now()
	m.worked.Store(&now)
}

// waits notes that the role is not, until it says so again.
func (m *monitor) waits() { m.worked.Store(nil) }

// serve answers at addr, if that is not empty, until stop is called. The pages are
// those of a site that is made for it, unless makeSite is nil.
func (m *monitor) serve(addr string, conn *queue.Conn, makeSite func(*queue.Conn) *pages.Site, log *slog.Logger) (stop func(), err error) {
	if addr == "" {
		return func() {}, nil
	}
	m.conn = conn
	endpoints := daemon.Endpoints{
		Alive:   m.alive,
		Ready:   m.ready,
		Metrics: promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{}),
	}
	endSite := func() {}
	if makeSite != nil {
		site := makeSite(conn)
		endpoints.Pages = site
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			site.Run(ctx)
		}()
		endSite = func() {
			cancel()
			<-ended
		}
	}
	url, stopServer, err := daemon.Serve(addr, endpoints)
	if err != nil {
		endSite()
		return nil, withCode(exitConfig, err)
	}
	log.Info("metrics and probes", "url", url)
	return func() {
		endSite() // first: who listens to a page keeps the server from stopping
		if err := stopServer(); err != nil {
			log.Warn("metrics and probes", "error", err)
		}
	}, nil
}

// alive says why the process must be started again. A broker that is away is no
// reason: a new process would not find it either.
func (m *monitor) alive() error {
	select {
	case <-m.conn.Closed():
		return m.conn.Err()
	default:
	}
	worked := m.worked.Load()
	if worked == nil || m.patience == 0 || !m.conn.Connected() {
		return nil
	}
	if silent := time.Since(*worked); silent > m.patience {
		return fmt.Errorf("the loop has stood still for %s", silent.Round(time.Second))
	}
	return nil
}

// ready says why the process cannot work now.
func (m *monitor) ready() error {
	switch {
	case !m.conn.Connected():
		return errors.New("the broker is not connected")
	case m.worked.Load() == nil:
		return errors.New("waiting for the streams")
	}
	return nil
}
