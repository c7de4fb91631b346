package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/pprof"

	"tether/agent"
	"tether/agent/config"
	"tether/host"
	"tether/platform/dirs"
)

// profiled returns the daemon and the host as children of this binary, which write CPU
// profiles to dir when they end. They use the same packages as the programs.
func profiled(dir string) (programs, error) {
	self, err := os.Executable()
	return programs{
		daemon: []string{self, childArg, "daemon", filepath.Join(dir, "daemon.pprof")},
		host:   []string{self, childArg, "host", filepath.Join(dir, "host.pprof")},
	}, err
}

// profile calls serve with a context that an interrupt cancels, and writes the CPU
// profile of the call to the file name.
func profile(name string, serve func(context.Context) error) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := pprof.StartCPUProfile(f); err != nil {
		return err
	}
	defer pprof.StopCPUProfile()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	return serve(ctx)
}

func serveDaemon(ctx context.Context) error {
	where, err := dirs.Get()
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	settings := config.Default()
	settings.Lend.AsRoot = true
	a, err := agent.New(agent.Config{Dirs: where, AllowRoot: true, Settings: &settings,
		Holder: agent.Program{Path: self, Argv: []string{self, childArg, "holder"}}})
	if err != nil {
		return err
	}
	return a.Run(ctx)
}

func serveHost(ctx context.Context) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	h := host.New(host.Options{})
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == portDoor {
			passToPort(h, w, r)
			return
		}
		h.ServeHTTP(w, r)
	})}
	failed := make(chan error, 1) // one slot for the error of Serve
	go func() { failed <- server.Serve(l) }()
	fmt.Printf("READY ws://%s\n", l.Addr())
	select {
	case err = <-failed:
	case <-ctx.Done():
	}
	h.Close()
	return errors.Join(err, server.Close())
}
