package problems

import (
	"slices"
	"strconv"

	"tether/internal/lazyregexp"
)

// Forms in which programs say that a port is taken.
var (
	takenForms = lazyregexp.New(`\bEADDRINUSE\b|\bAddrInUse\b|[Aa]ddress (?:is )?already in use|[Pp]ort\b.*\b(?:in use|used|allocated|taken|occupied)\b|one usage of each socket address|already (?:running|listening) on port|Connection in use: \(`)
	// The port in such a text: ('::', 8000), :::3000, 127.0.0.1:8080, *:6379, port 3000.
	takenPort = lazyregexp.New(`\('[^']*', (\d{1,5})\)|(?:\.\d+|\.[A-Za-z][\w-]*|localhost|\*|\]|::|[\s"(/]):(\d{1,5})\b|\b[Pp]ort\W{1,3}(\d{1,5})\b`)
	numbers   = lazyregexp.New(`\d{2,5}`)
)

// TakenPorts reports whether the problem is that a TCP port is taken, and which: the one
// that its message names, else those that the command line may mean, of which at most
// one is it.
func (p *Problem) TakenPorts() (ports []int, yes bool) {
	if !takenForms().MatchString(p.Message) {
		return nil, false
	}
	if groups := takenPort().FindStringSubmatch(p.Message); groups != nil {
		return portsOf(groups[1:]), true
	}
	return portsOf(numbers().FindAllString(p.command, -1)), true
}

// portsOf returns the texts that are numbers of ports, each once.
func portsOf(texts []string) (ports []int) {
	for _, text := range texts {
		if n, err := strconv.Atoi(text); err == nil && n > 0 && n < 1<<16 && !slices.Contains(ports, n) {
			ports = append(ports, n)
		}
	}
	return ports
}
