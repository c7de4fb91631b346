package terminals

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"tether/platform/tty"
)

// probeArg, as the first argument, makes the test's binary a program in a window:
//
//	ask FILE                writes to FILE what the terminal answers to each of questions
//	take FILE ENABLE UNTIL  sends ENABLE, and writes to FILE what comes up to UNTIL
//	size FILE               writes to FILE the size after the next change
//
// FILE.ready exists as soon as it waits for what the test does.
const probeArg = "probe"

func TestMain(m *testing.M) {
	if len(os.Args) > 3 && os.Args[1] == probeArg {
		if err := probe(os.Args[2], os.Args[3], os.Args[4:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// questions are what programs ask terminals.
var questions = []struct{ name, text string }{
	{"DA1", "\x1b[c"}, {"DA2", "\x1b[>c"}, {"DA3", "\x1b[=c"},
	{"XTVERSION", "\x1b[>q"},
	{"cursor", "\x1b[5;7H\x1b[6n"}, {"cursor and page", "\x1b[?6n"},
	{"foreground", "\x1b]10;?\x1b\\"}, {"background", "\x1b]11;?\a"}, {"cursor's colour", "\x1b]12;?\x1b\\"},
	{"colour 1", "\x1b]4;1;?\x1b\\"},
	{"synchronized output", "\x1b[?2026$p"}, {"bracketed paste", "\x1b[?2004$p"}, {"mouse", "\x1b[?1000$p"},
	{"kitty's keyboard", "\x1b[?u"}, {"modifyOtherKeys", "\x1b[?4m"},
	{"XTGETTCAP", "\x1bP+q544e\x1b\\"}, {"settings", "\x1bP$qm\x1b\\"}, {"cursor's style", "\x1bP$q q\x1b\\"},
	{"pixels", "\x1b[14t"}, {"a cell's pixels", "\x1b[16t"}, {"cells", "\x1b[18t"},
	{"kitty's graphics", "\x1b_Gi=31,s=1,v=1,a=q,t=d,f=24;AAAA\x1b\\"},
	{"sixel's registers", "\x1b[?1;1;0S"},
	{"colour scheme", "\x1b[?996n"},
}

// Each question is followed by one that every terminal answers, so that nothing depends
// on time.
const (
	status   = "\x1b[5n"
	statusIs = "\x1b[0n"
)

func probe(what, file string, args []string) error {
	restore, err := tty.Raw(os.Stdin)
	if err != nil {
		return err
	}
	defer restore()
	var out []byte
	switch what {
	case "ask":
		out, err = ask()
	case "take":
		out, err = take(file, unescape(args[0]), unescape(args[1]))
	case "size":
		out, err = size(file)
	default:
		err = fmt.Errorf("%q is no probe", what)
	}
	if err != nil {
		return err
	}
	return finish(file, out)
}

// unescape replaces \e: an argument that is typed has no control characters.
func unescape(s string) string { return strings.ReplaceAll(s, `\e`, "\x1b") }

// finish writes the whole file at once.
func finish(file string, out []byte) error {
	if err := os.WriteFile(file+".new", out, 0o600); err != nil {
		return err
	}
	return os.Rename(file+".new", file)
}

func ask() ([]byte, error) {
	var all []byte
	for _, q := range questions {
		if _, err := os.Stdout.WriteString(q.text + status); err != nil {
			return nil, err
		}
		answer, err := until(statusIs)
		if err != nil {
			return nil, err
		}
		all = fmt.Appendf(all, "%s: %q\n", q.name, answer)
	}
	return all, nil
}

// until reads up to and with the text end.
func until(end string) ([]byte, error) {
	var got []byte
	buf := make([]byte, 4<<10)
	for !bytes.HasSuffix(got, []byte(end)) {
		n, err := os.Stdin.Read(buf)
		if err != nil {
			return got, err
		}
		got = append(got, buf[:n]...)
	}
	return got, nil
}

// take also asks for the terminal's status before and after: when it waits, ENABLE has
// been carried out, and nothing comes after UNTIL.
func take(file, enable, end string) ([]byte, error) {
	if _, err := os.Stdout.WriteString(enable + status); err != nil {
		return nil, err
	}
	first, err := until(statusIs)
	if err != nil {
		return nil, err
	}
	if err := finish(file+".ready", nil); err != nil {
		return nil, err
	}
	got, err := until(end)
	if err != nil {
		return nil, err
	}
	// Off: mouse, focus, pastes, both forms of keys.
	if _, err := os.Stdout.WriteString("\x1b[?1000l\x1b[?1006l\x1b[?1004l\x1b[?2004l\x1b[<u\x1b[>4m" + status); err != nil {
		return nil, err
	}
	last, err := until(statusIs)
	return fmt.Appendf(nil, "first %q\ncame %q\nlast %q\n", first, got, last), err
}

func size(file string) ([]byte, error) {
	changed, stop := tty.Resized()
	defer stop()
	if err := finish(file+".ready", nil); err != nil {
		return nil, err
	}
	<-changed
	cols, rows, ok := tty.Size(os.Stdin)
	if !ok {
		return nil, errors.New("no size")
	}
	return fmt.Appendf(nil, "%d x %d", cols, rows), nil
}
