package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"tether/cmd/tether/internal/display"
	"tether/internal/lazyregexp"
	"tether/platform/browser"
	"tether/platform/shell"
)

// served finds the address that the dev server prints.
var served = lazyregexp.New(`listening on (http://[0-9.:]+)`)

// play lets the person choose the steps.
func (s *stage) play(ctx context.Context) error {
	site, err := s.site(ctx)
	if err != nil {
		return err
	}
	link, err := s.link(ctx)
	if err != nil {
		return err
	}
	a := s.app
	fmt.Fprintf(a.stdout, "\nWatch it live in a browser, as users of the host do:\n\n  %s\n\nor in another terminal:\n\n  TETHER_HOME=%s %s watch %s %s\n",
		link, display.ShellLine([]string{s.home()}), display.ShellLine([]string{s.self}), demoHost, demoServer)
	changes, running := 0, true
	for {
		fmt.Fprint(a.stdout, "\no open the page · c change the served page · f let an agent fetch a broken page · s start a shared shell · e end the server · q quit ")
		key, err := a.key(ctx, "ocfseq")
		fmt.Fprintln(a.stdout)
		if err != nil {
			return err
		}
		switch {
		case key == 'q':
			fmt.Fprintln(a.stdout, "the demo ends and removes everything; to use your own host: tether pair wss://HOST")
			return nil
		case key == 'o':
			err = s.openPage(ctx, &link)
		case key == 's':
			err = s.tether(ctx, "run", "--name", "shell", "--", shell.Login()) // no login shell, which would reset PATH
			var failed *exec.ExitError
			if errors.As(err, &failed) { // the status of its last command is not a failure of the demo
				err = nil
			}
			fmt.Fprintln(a.stdout, "the shell has ended; the host's page shows its output and its commands")
		case !running:
			fmt.Fprintln(a.stdout, "the server has already ended")
		case key == 'c':
			changes++
			if err = s.change(fmt.Sprintf("Hello, for the %s time", ordinal(changes+1))); err == nil {
				_, err = get(ctx, site+"/")
			}
			fmt.Fprintf(a.stdout, "page changed and requested once; the host's page shows both lines. Server: %s\n", site)
		case key == 'f':
			err = s.showBroken(ctx, site)
		case key == 'e':
			running = false
			if err = s.tether(ctx, "kill", demoServer); err == nil {
				fmt.Fprintln(a.stdout, "server ended; the host's page shows it")
			}
		}
		if err != nil {
			return err
		}
	}
}

func ordinal(n int) string {
	if words := []string{"first", "second", "third"}; n <= len(words) {
		return words[n-1]
	}
	return fmt.Sprintf("%dth", n)
}

// openPage opens a link, which works only once, and makes the next one.
func (s *stage) openPage(ctx context.Context, link *string) error {
	opened := *link
	var err error
	if *link, err = s.link(ctx); err != nil {
		return err
	}
	if err := browser.Open(opened); err != nil {
		fmt.Fprintf(s.app.stdout, "%v; the link: %s\n", err, opened)
		return nil
	}
	fmt.Fprintln(s.app.stdout, "page opened in the browser; choose", demoServer, "there")
	return nil
}

// home is that of the demo's daemon.
func (s *stage) home() string { return filepath.Join(s.dir, "home") }

// site waits until the dev server listens, and returns its address.
func (s *stage) site(ctx context.Context) (string, error) {
	site := ""
	err := s.until(ctx, "the server's address", func() bool {
		out, err := exec.CommandContext(ctx, s.self, "read", demoServer).Output()
		if found := served().FindSubmatch(out); err == nil && found != nil {
			site = string(found[1])
		}
		return site != ""
	})
	return site, err
}

// prove runs all steps without a person and checks an observer's view at the host.
func (s *stage) prove(ctx context.Context) error {
	var seen buffer
	watching := exec.CommandContext(ctx, s.self, "watch", "--wait", demoHost, demoServer)
	watching.Stdout, watching.Stderr = &seen, &seen
	if err := watching.Start(); err != nil {
		return err
	}
	watched := make(chan error, 1)
	go func() { watched <- watching.Wait() }()
	defer func() { _ = watching.Process.Kill() }() // fails if the program has ended, as it should

	err := s.steps(ctx, &seen)
	if err == nil {
		select {
		case err = <-watched:
		case <-ctx.Done():
			err = ctx.Err()
		}
	}
	if err != nil {
		return fmt.Errorf("%w; the observer saw:\n%s", err, seen.String())
	}
	for _, path := range []string{"hello", "without-a-daemon", "with-another"} {
		if n := strings.Count(seen.String(), `GET "/`+path+`"`); n != 1 {
			return fmt.Errorf("the observer saw the line of /%s %d times:\n%s", path, n, seen.String())
		}
	}
	s.say("an observer at the host saw each line once:")
	for line := range strings.Lines(seen.String()) {
		fmt.Fprint(s.app.stdout, "  | ", line)
	}
	link, err := s.link(ctx)
	if err != nil {
		return err
	}
	s.say("users of the host watch it in a browser, at a link such as this (to try it, run tether demo in an interactive terminal)")
	if _, err := get(ctx, link); err != nil {
		return fmt.Errorf("the page: %w", err)
	}
	fmt.Fprintln(s.app.stdout, link)
	return nil
}

// steps are prove's steps with the server.
func (s *stage) steps(ctx context.Context, seen *buffer) error {
	sees := func(pattern string) error {
		re := regexp.MustCompile(pattern)
		return s.until(ctx, pattern, func() bool { return re.MatchString(seen.String()) })
	}
	if err := sees(served().String()); err != nil {
		return err
	}
	site := served().FindStringSubmatch(seen.String())[1]
	toSee := func(pattern string) func() error { return func() error { return sees(pattern) } }
	visit := func(path, wanted string) func() error {
		return func() error {
			text, err := get(ctx, site+path)
			if err == nil && !strings.Contains(text, wanted) {
				err = fmt.Errorf("the server's page is %q", text)
			}
			if err != nil || wanted == "" {
				return err
			}
			return sees(`GET "` + path + `" .*200`)
		}
	}
	run := func(args ...string) func() error { return func() error { return s.tether(ctx, args...) } }
	for _, step := range []struct {
		says string
		do   []func() error
	}{
		{"the running terminals", []func() error{run("ls")}},
		{"request a page", []func() error{visit("/hello", "Hello")}},
		{"change the page", []func() error{func() error { return s.change("Changed") }, toSee(`page\.html has changed`), visit("/changed", "Changed")}},
		{"share the server's port, too, and let an agent at the host fetch a page that breaks", []func() error{func() error { return s.showBroken(ctx, site) }}},
		{"kill the daemon; the server keeps serving, and the observer gets nothing",
			[]func() error{func() error { return s.killDaemon(ctx) }, visit("/without-a-daemon", "")}},
		{"start another daemon, which resumes the server",
			[]func() error{run("daemon", "--background"), toSee(`GET "/without-a-daemon" .*200`), visit("/with-another", "Changed"), run("ls")}},
		{"kill the server", []func() error{run("kill", demoServer), toSee(`(?m)^tether: exited [0-9]`)}},
	} {
		s.say(step.says)
		for _, do := range step.do {
			if err := do(); err != nil {
				return err
			}
		}
	}
	return nil
}

// killDaemon ends the daemon as a crash would.
func (s *stage) killDaemon(ctx context.Context) error {
	client, _, err := s.app.client()
	if err != nil {
		return err
	}
	defer client.Close()
	status, err := client.Status(ctx)
	if err != nil {
		return err
	}
	daemon, err := os.FindProcess(status.Pid)
	if err != nil {
		return err
	}
	if err := daemon.Kill(); err != nil {
		return err
	}
	return client.WaitGone(ctx)
}
