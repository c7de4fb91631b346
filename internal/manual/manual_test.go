package manual_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"tether/internal/manual"
	"tether/internal/testkit/check"
	"tether/internal/testkit/must"
)

func nothing(*cobra.Command, []string) error { return nil }

// tree returns a program with a command, a subcommand of that, and some commands that are
// not shown.
func tree() *cobra.Command {
	root := &cobra.Command{Use: "prog", Short: "do things", Run: func(*cobra.Command, []string) {}, SilenceErrors: true, SilenceUsage: true,
		Long: "prog does things:\nand more.\n\n  prog a    so\n\n  prog b    or so\n\nThat is .all\n.it \\ does."}
	root.PersistentFlags().Bool("loud", false, "say more")
	a := &cobra.Command{Use: "a-b FILE", Short: "do one thing", RunE: nothing}
	a.Flags().StringP("out", "o", "-", "write to `FILE`\nor not")
	a.Flags().Int("hidden", 1, "")
	_ = a.Flags().MarkHidden("hidden")
	a.Example = "  prog a-b -o x y  # so\n  prog a-b z"
	a.AddCommand(&cobra.Command{Use: "c", Short: "do less", RunE: nothing})
	root.AddCommand(a, &cobra.Command{Use: "secret", Short: "no", Hidden: true, RunE: nothing})
	return root
}

var book = manual.Book{Version: "1.2-x", Date: time.Date(2026, 11, 2, 23, 0, 0, 0, time.UTC),
	Sections: []manual.Section{{"EXIT STATUS", "As usual:\n  0  fine\n  1  not\n"}}}

const rootPage = `.TH "PROG" 1 "2026\-11\-02" "prog 1.2\-x" "User Commands"
.SH NAME
prog \- do things
.SH SYNOPSIS
\fBprog\fR [flags]
.br
\fBprog\fR COMMAND
.SH DESCRIPTION
prog does things:
and more.
.PP
.RS 2
.nf
prog a    so

prog b    or so
.fi
.RE
.PP
That is .all
\&.it \e does.
.SH COMMANDS
.TP
\fBprog\-a\-b\fR(1)
do one thing
.SH OPTIONS
.TP
\fB\-h\fR, \fB\-\-help\fR
help for prog
.TP
\fB\-\-loud\fR
say more
.SH EXIT STATUS
As usual:
.PP
.RS 2
.nf
0  fine
1  not
.fi
.RE
`

const commandPage = `.TH "PROG\-A\-B" 1 "2026\-11\-02" "prog 1.2\-x" "User Commands"
.SH NAME
prog\-a\-b \- do one thing
.SH SYNOPSIS
\fBprog a\-b\fR FILE [flags]
.br
\fBprog a\-b\fR COMMAND
.SH DESCRIPTION
do one thing
.SH COMMANDS
.TP
\fBprog\-a\-b\-c\fR(1)
do less
.SH OPTIONS
.TP
\fB\-h\fR, \fB\-\-help\fR
help for a\-b
.TP
\fB\-o\fR, \fB\-\-out\fR \fIFILE\fR
write to FILE
or not (default "\-")
.SH COMMON OPTIONS
.TP
\fB\-\-loud\fR
say more
.SH EXAMPLES
.PP
.RS 2
.nf
prog a\-b \-o x y  # so
prog a\-b z
.fi
.RE
.SH SEE ALSO
\fBprog\fR(1)
`

func TestPages(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "man1")
	must.Do(t, book.Write(dir, tree()))
	var names []string
	entries := must.Get(os.ReadDir(dir))(t)
	for _, e := range entries {
		names = append(names, e.Name())
	}
	check.Equal(t, "pages", []string{"prog-a-b-c.1", "prog-a-b.1", "prog.1"}, names)
	for name, want := range map[string]string{"prog.1": rootPage, "prog-a-b.1": commandPage} {
		got := must.Get(os.ReadFile(filepath.Join(dir, name)))(t)
		check.Equal(t, name, want, string(got))
	}
}

// If the page of a command would replace that of another program, it has another name,
// and so have the pages of its subcommands. Each of the two pages names the other.
func TestPageOfAnotherProgram(t *testing.T) {
	dir := t.TempDir()
	b := book
	b.Names, b.Also = map[string]string{"prog a-b": "prog-abs"}, []string{"prog-a-b"}
	for range 2 { // writing once does not change the book
		must.Do(t, b.Write(dir, tree()))
	}
	for name, want := range map[string]string{
		"prog.1":       ".SH SEE ALSO\n\\fBprog\\-a\\-b\\fR(1)\n",
		"prog-abs.1":   ".SH NAME\nprog\\-abs \\- do one thing\n.SH SYNOPSIS\n\\fBprog a\\-b\\fR FILE",
		"prog-abs-c.1": ".SH SEE ALSO\n\\fBprog\\-abs\\fR(1), \\fBprog\\fR(1)\n",
	} {
		if page, err := os.ReadFile(filepath.Join(dir, name)); err != nil || !strings.Contains(string(page), want) {
			t.Errorf("%s: %v, no %q in\n%s", name, err, want, page)
		}
	}
	if page, _ := os.ReadFile(filepath.Join(dir, "prog-abs.1")); !strings.Contains(string(page), ".SH SEE ALSO\n\\fBprog\\fR(1), \\fBprog\\-a\\-b\\fR(1)\n") {
		t.Errorf("the page does not name the program:\n%s", page)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 3 {
		t.Errorf("pages: %v, %v", entries, err)
	}
}

// groff and mandoc accept faulty pages, but report the faults.
func TestPagesAreRight(t *testing.T) {
	if _, err := exec.LookPath("groff"); err != nil {
		t.Skip("groff is not installed")
	}
	cmd := exec.Command("groff", "-man", "-Tascii", "-ww", "-P-c")
	cmd.Stdin = strings.NewReader(rootPage)
	var said strings.Builder
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil || said.Len() > 0 {
		t.Fatalf("groff: %v, %s", err, said.String())
	}
	for _, want := range []string{"prog - do things", "prog b    or so\n", ".it \\ does.", "say more", "0  fine\n"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("no %q in what is shown:\n%s", want, out)
		}
	}
}

func TestCommand(t *testing.T) {
	for _, c := range []struct {
		name, date string
		args       []string
		want       string // part of the page's head, or of the error
	}{
		{"dated by the commit", "86400", []string{"manual"}, `"1970\-01\-02"`},
		{"a date that is none", "today", []string{"manual"}, `SOURCE_DATE_EPOCH is "today"; give seconds`},
		{"without a directory", "", nil, "accepts 1 arg"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Setenv(manual.DateVar, c.date)
			root := tree()
			root.AddCommand(book.Command())
			dir := t.TempDir()
			args := []string{"manual"}
			if c.args != nil {
				args = append(args, dir)
			}
			root.SetArgs(args)
			err := root.Execute()
			page, missing := os.ReadFile(filepath.Join(dir, "prog.1"))
			if err != nil {
				page = []byte(err.Error())
			} else if missing != nil {
				t.Fatal(missing)
			}
			if !strings.Contains(string(page), c.want) {
				t.Errorf("got %q, want %q in it", page, c.want)
			}
			if strings.Contains(string(page), "secret") {
				t.Error("a hidden command is shown")
			}
		})
	}
}

// A book without a date gets today's date, and a failed write is an error.
func TestCommandElsewhere(t *testing.T) {
	t.Setenv(manual.DateVar, "")
	file := filepath.Join(t.TempDir(), "file")
	must.Do(t, os.WriteFile(file, nil, 0o600))
	root := tree()
	root.AddCommand(manual.Book{}.Command())
	root.SetArgs([]string{"manual", file})
	if err := root.Execute(); err == nil || !strings.Contains(err.Error(), file) {
		t.Errorf("writing into a file: %v, want an error that names %s", err, file)
	}
}
