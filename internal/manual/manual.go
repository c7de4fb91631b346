// Package manual makes the manual pages of a cobra command line, for packages: one page
// for each command that help lists, in the macros of man(7). A page has the text of
// --help, so that each text is written only once.
//
//	root.AddCommand(manual.Book{Version: "1.2.3"}.Command())
package manual

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"tether/internal/lazyregexp"
)

// DateVar is the environment variable with the date of the pages, in seconds since 1970.
// With it, two builds of one commit have the same pages
// (https://reproducible-builds.org/specs/source-date-epoch/).
const DateVar = "SOURCE_DATE_EPOCH"

// Book holds the common parts of one program's pages.
type Book struct {
	Version  string
	Date     time.Time // pages show only the day, in UTC
	Sections []Section // for the root command's page only, after its options
	// Names replaces names of pages, by command path. A page needs another name if its
	// usual one is that of another program: if prog-host is a program, the page of "prog
	// host" may be "prog-hosts". The names of the pages of its subcommands begin with
	// that name.
	Names map[string]string
	// Also lists further pages, such as "prog-host", for SEE ALSO on the root command's
	// page.
	Also []string
}

// Section is text that is not in --help. Lines that begin with a space are not filled;
// all others are.
type Section struct{ Title, Text string }

// Command returns a hidden command that writes the pages into a directory, for people who
// build packages. If Date is zero, it uses the present time; DateVar comes before both.
func (b Book) Command() *cobra.Command {
	return &cobra.Command{
		Use: "manual DIR", Short: "write the manual pages into a directory", Hidden: true, Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if b.Date.IsZero() {
				b.Date = time.Now()
			}
			if s := os.Getenv(DateVar); s != "" {
				seconds, err := strconv.ParseInt(s, 10, 64)
				if err != nil {
					return fmt.Errorf("%s is %q; give seconds since 1970", DateVar, s)
				}
				b.Date = time.Unix(seconds, 0)
			}
			return b.Write(args[0], c.Root())
		},
	}
}

// Write writes the pages of root and its subcommands into dir. It creates dir if
// necessary. The file name of a page is its command's name, such as tether-run.1.
func (b Book) Write(dir string, root *cobra.Command) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	return b.write(dir, root)
}

func (b Book) write(dir string, c *cobra.Command) error {
	c.InitDefaultHelpFlag()
	if err := os.WriteFile(filepath.Join(dir, b.name(c)+".1"), b.Page(c), 0o644); err != nil {
		return err
	}
	for _, sub := range shown(c) {
		if err := b.write(dir, sub); err != nil {
			return err
		}
	}
	return nil
}

// name returns the name of the command's page, such as tether-service-install.
func (b Book) name(c *cobra.Command) string {
	if name := b.Names[c.CommandPath()]; name != "" || !c.HasParent() {
		return cmp.Or(name, c.Name())
	}
	return b.name(c.Parent()) + "-" + c.Name()
}

// shown returns the subcommands with a page. Cobra's own commands, help and completion,
// have none: their help text is better.
func shown(c *cobra.Command) []*cobra.Command {
	var all []*cobra.Command
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() && sub.Name() != "help" && sub.Name() != "completion" {
			all = append(all, sub)
		}
	}
	return all
}

// Page returns the manual page of one command.
func (b Book) Page(c *cobra.Command) []byte {
	var w bytes.Buffer
	fmt.Fprintf(&w, ".TH %s 1 %s %s %s\n", quoted(strings.ToUpper(b.name(c))), quoted(b.Date.UTC().Format(time.DateOnly)),
		quoted(c.Root().Name()+" "+b.Version), quoted("User Commands"))
	fmt.Fprintf(&w, ".SH NAME\n%s \\- %s\n", escaped(b.name(c)), escaped(c.Short))
	w.WriteString(".SH SYNOPSIS\n")
	if c.Runnable() {
		fmt.Fprintf(&w, "\\fB%s\\fR%s\n", escaped(c.CommandPath()), escaped(strings.TrimPrefix(c.UseLine(), c.CommandPath())))
	}
	if len(shown(c)) > 0 {
		fmt.Fprintf(&w, ".br\n\\fB%s\\fR COMMAND\n", escaped(c.CommandPath()))
	}
	text := cmp.Or(c.Long, c.Short)
	section(&w, Section{"DESCRIPTION", text})
	b.commands(&w, c)
	flags(&w, "OPTIONS", c.NonInheritedFlags().FlagUsages())
	flags(&w, "COMMON OPTIONS", c.InheritedFlags().FlagUsages())
	if !c.HasParent() {
		for _, s := range b.Sections {
			section(&w, s)
		}
	}
	if c.Example != "" {
		section(&w, Section{"EXAMPLES", c.Example})
	}
	b.seeAlso(&w, c)
	return w.Bytes()
}

// commands writes the list of the subcommands.
func (b Book) commands(w *bytes.Buffer, c *cobra.Command) {
	if len(shown(c)) == 0 {
		return
	}
	w.WriteString(".SH COMMANDS\n")
	for _, sub := range shown(c) {
		fmt.Fprintf(w, ".TP\n\\fB%s\\fR(1)\n%s\n", escaped(b.name(sub)), escaped(sub.Short))
	}
}

// option matches a line of pflag's list: a letter, a name, the name of the value, and the
// description after at least three spaces.
var option = lazyregexp.New(`^ +(?:(-\w), )?(--\S+)(?: (\S.*?))? {3,}(.*)$`)

// flags writes the options that help lists. It parses pflag's list, because pflag offers
// the names of values, and the defaults that are worth showing, only there.
func flags(w *bytes.Buffer, title, list string) {
	if list == "" {
		return
	}
	fmt.Fprintf(w, ".SH %s\n", title)
	for line := range strings.Lines(list) {
		line = strings.TrimRight(line, "\n")
		m := option().FindStringSubmatch(line)
		if m == nil {
			fmt.Fprintf(w, "%s\n", escaped(strings.TrimLeft(line, " "))) // continues the description of the line before
			continue
		}
		w.WriteString(".TP\n")
		if m[1] != "" {
			fmt.Fprintf(w, "\\fB%s\\fR, ", escaped(m[1]))
		}
		fmt.Fprintf(w, "\\fB%s\\fR", escaped(m[2]))
		if m[3] != "" {
			fmt.Fprintf(w, " \\fI%s\\fR", escaped(m[3]))
		}
		fmt.Fprintf(w, "\n%s\n", escaped(m[4]))
	}
}

// section writes a section: paragraphs are filled, indented lines are not.
func section(w *bytes.Buffer, s Section) {
	fmt.Fprintf(w, ".SH %s\n", escaped(s.Title))
	kept, gap := false, false
	for line := range strings.Lines(strings.TrimRight(s.Text, "\n")) {
		line = strings.TrimRight(line, "\n")
		if line == "" {
			gap = true
			continue
		}
		if keep := strings.HasPrefix(line, " "); keep != kept {
			w.WriteString(map[bool]string{true: ".PP\n.RS 2\n.nf\n", false: ".fi\n.RE\n.PP\n"}[keep])
			kept = keep
		} else if gap {
			w.WriteString(map[bool]string{true: "\n", false: ".PP\n"}[kept])
		}
		gap = false
		if kept {
			line = strings.TrimPrefix(strings.TrimPrefix(line, " "), " ")
		}
		w.WriteString(escaped(line) + "\n")
	}
	if kept {
		w.WriteString(".fi\n.RE\n")
	}
}

// seeAlso writes the names of related pages, if there are any.
func (b Book) seeAlso(w *bytes.Buffer, c *cobra.Command) {
	var names []string
	if !c.HasParent() {
		names = slices.Clone(b.Also)
	}
	for p := c.Parent(); p != nil; p = p.Parent() {
		names = append(names, b.name(p))
	}
	if own := strings.ReplaceAll(c.CommandPath(), " ", "-"); b.Names[c.CommandPath()] != "" {
		names = append(names, own) // the program that has the usual name
	}
	if len(names) == 0 {
		return
	}
	for i, name := range names {
		names[i] = fmt.Sprintf("\\fB%s\\fR(1)", escaped(name))
	}
	fmt.Fprintf(w, ".SH SEE ALSO\n%s\n", strings.Join(names, ", "))
}

// escaped returns s so that roff shows it literally. It escapes backslashes, a dot or
// quote at the start, and hyphens, which roff would not show as minus signs, and replaces
// an ellipsis by three dots.
func escaped(s string) string {
	s = strings.NewReplacer(`\`, `\e`, "-", `\-`, "…", "...").Replace(s)
	if strings.HasPrefix(s, ".") || strings.HasPrefix(s, "'") {
		s = `\&` + s
	}
	return s
}

// quoted returns s as one argument of a macro.
func quoted(s string) string { return `"` + strings.ReplaceAll(escaped(s), `"`, `""`) + `"` }
