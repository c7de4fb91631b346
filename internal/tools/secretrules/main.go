// Command secretrules turns gitleaks' rules into the list of token forms that package
// agent/redact reads: one line for each prefix, with the rule's name, the prefix and the
// expression for the text after it. Rules that need a name near the token are left out,
// since telling names are found on their own, and so are those without a few fixed bytes
// at their beginning. scripts/update-secrets.sh calls it.
package main

import (
	"bufio"
	"flag"
	"fmt"
	"log"
	"os"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
)

const (
	minPrefix   = 3  // bytes of a prefix; a shorter one is everywhere
	maxPrefixes = 12 // of one rule
)

// rules finds each rule's name and expression in gitleaks' file, which a program of
// theirs writes always alike.
var rules = regexp.MustCompile(`(?m)^id = "([^"]+)"\n(?:description = .*\n)?regex = \'\'\'(.*)\'\'\'$`)

// unfit are rules that match harmless output: base64 of zeros, checksums, addresses,
// names; that redact covers otherwise; or that begin like much ordinary text, which costs
// speed.
var unfit = []string{"square-access-token", "sourcegraph-access-token", "authress-service-client-access-key", "sidekiq-sensitive-url", "private-key", "flutterwave-public-key", "jwt-base64",
	"aws-amazon-bedrock-api-key-short-lived",
	"openshift-user-token", "settlemint-application-access-token", "settlemint-personal-access-token", "settlemint-service-access-token", "1password-secret-key"}

// ends are how gitleaks' rules say that a token ends; here the longest match is taken.
var ends = []string{"(?:[\\x60'\"\\s;]|\\\\[nr]|$|\\b)", "(?:[\\x60'\"\\s;]|\\\\[nr]|$)", "(?:[^\\w-]|\\z)", `\b`}

func main() {
	log.SetFlags(0)
	version := flag.String("version", "", "the `version` of the rules")
	flag.Parse()
	data, err := os.ReadFile(flag.Arg(0))
	if err != nil {
		log.Fatal(err)
	}
	out := bufio.NewWriter(os.Stdout)
	fmt.Fprintf(out, "# Token forms of gitleaks %s (MIT, see LICENSE.gitleaks), made by scripts/update-secrets.sh: do not edit.\n# name, prefix, expression\n", *version)
	for _, m := range rules.FindAllSubmatch(data, -1) {
		id := string(m[1])
		if slices.Contains(unfit, id) {
			continue
		}
		for _, form := range forms(string(m[2])) {
			fmt.Fprintf(out, "%s\t%s\t%s\n", id, form[0], form[1])
		}
	}
	if err := out.Flush(); err != nil {
		log.Fatal(err)
	}
}

// forms are the prefixes of an expression, each with an expression for the whole.
func forms(expr string) (all [][2]string) {
	for _, end := range ends {
		expr = strings.TrimSuffix(expr, end)
	}
	for _, begin := range []string{`(?i)\b`, `\b`} {
		if rest, ok := strings.CutPrefix(expr, begin); ok {
			expr = rest
			if strings.HasPrefix(begin, "(?i)") {
				expr = "(?i:" + rest + ")"
			}
		}
	}
	re, err := syntax.Parse(expr, syntax.Perl)
	if err != nil || re.Op == syntax.OpEmptyMatch {
		return nil
	}
	// A prefix counts as written, even if the rule ignores its case.
	written, err := syntax.Parse(strings.NewReplacer("(?i)", "", "(?i:", "(?:", "(?-i:", "(?:").Replace(expr), syntax.Perl)
	if err != nil {
		return nil
	}
	prefixes, n := []string{""}, 0
	for _, part := range flat(written, nil) {
		some, whole := begins(part)
		if !whole || len(prefixes)*len(some) > maxPrefixes {
			break
		}
		n++
		prefixes = cross(prefixes, some)
	}
	parts := flat(re, nil)
	if len(parts) != len(flat(written, nil)) {
		return nil
	}
	var rest strings.Builder
	for _, part := range parts[n:] {
		rest.WriteString("(?:" + part.String() + ")")
	}
	ascii := strings.NewReplacer("ſ", "", "\u212a", "").Replace(rest.String()) // characters that fold to s and k; tokens are ASCII
	for _, p := range prefixes {
		if len(p) < minPrefix || ascii == "" || strings.ContainsAny(p, " /:<>\"'\t\\@") || regexp.MustCompile(`^[a-z]{3,}$`).MatchString(p) {
			return nil
		}
		all = append(all, [2]string{p, regexp.QuoteMeta(p) + ascii})
	}
	return all
}

// flat are the parts of an expression that follow each other.
func flat(re *syntax.Regexp, to []*syntax.Regexp) []*syntax.Regexp {
	switch re.Op {
	case syntax.OpCapture, syntax.OpConcat:
		for _, sub := range re.Sub {
			to = flat(sub, to)
		}
		return to
	case syntax.OpEmptyMatch, syntax.OpWordBoundary:
		return to
	}
	return append(to, re)
}

func cross(all, some []string) (out []string) {
	for _, a := range all {
		for _, b := range some {
			out = append(out, a+b)
		}
	}
	return out
}

// begins are the texts that an expression begins with, and whether each is all of it.
func begins(re *syntax.Regexp) (all []string, whole bool) {
	switch re.Op {
	case syntax.OpLiteral:
		return []string{string(re.Rune)}, true
	case syntax.OpCapture:
		return begins(re.Sub[0])
	case syntax.OpAlternate:
		whole = true
		for _, sub := range re.Sub {
			some, is := begins(sub)
			all, whole = append(all, some...), whole && is
		}
		slices.Sort(all)
		return slices.Compact(all), whole
	case syntax.OpCharClass:
		if n := len(re.Rune); n > 4 || n > 0 && re.Rune[n-1]-re.Rune[0] > 20 {
			return []string{""}, false
		}
		for i := 0; i < len(re.Rune); i += 2 {
			for r := re.Rune[i]; r <= re.Rune[i+1]; r++ {
				all = append(all, string(r))
			}
		}
		return all, true
	case syntax.OpConcat:
		all, whole = []string{""}, true
		for _, sub := range re.Sub {
			some, is := begins(sub)
			all, whole = cross(all, some), whole && is
		}
		return all, whole
	}
	return []string{""}, false
}
