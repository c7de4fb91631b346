package events

import (
	"fmt"
	"strings"
	"time"

	"tether/internal/clip"
)

// Text returns an event as one line, for people and for agents that read lines. It may
// contain text of programs as they printed it.
func Text(ev *Event) string {
	d := ev.Data
	who := fmt.Sprint(d["name"])
	if d["name"] == nil || who == "" {
		who = fmt.Sprint(d["machine"])
	}
	text := func(key string) string {
		if s, ok := d[key].(string); ok {
			return s
		}
		return ""
	}
	n := func(key string) int64 { return whole(d[key]) }
	switch ev.Name {
	case Line:
		if n("count") > 1 {
			return fmt.Sprintf("%s: %s [%d matching lines, last: %s]", who, clip.Text(text("line"), 170), n("count"), clip.Text(text("last"), 150))
		}
		return who + ": " + text("line")
	case CommandFinished:
		s := fmt.Sprintf("%s: command finished", who)
		if d["exitCode"] != nil {
			s += fmt.Sprintf(" with exit code %d", n("exitCode"))
		}
		s += fmt.Sprintf(" after %v: %s", (time.Duration(n("durationMs")) * time.Millisecond).Round(100*time.Millisecond), clip.Text(text("line"), 200))
		if n("count") > 1 {
			s += fmt.Sprintf(" [and %d more]", n("count")-1)
		}
		return s
	case Exited:
		s := fmt.Sprintf("%s: exited with code %d", who, n("exitCode"))
		if text("signal") != "" {
			s = fmt.Sprintf("%s: ended by %s", who, text("signal"))
		}
		if text("lastLine") != "" {
			s += "; last line: " + text("lastLine")
		}
		return s
	case Idle:
		return fmt.Sprintf("%s: no output for %v; last line: %s", who, time.Duration(n("idleMs"))*time.Millisecond, text("lastLine"))
	case PortOpened:
		return fmt.Sprintf("%s: port %d is open at %s", who, n("port"), text("address"))
	case PortClosed:
		return fmt.Sprintf("%s: port %d is closed", who, n("port"))
	case AwaitingInput:
		if text("kind") == "awaiting_secret" {
			return who + ": waits for a secret, such as a password"
		}
		return strings.TrimSuffix(who+": waits for input: "+text("promptLine"), ": ")
	case Ready:
		return strings.TrimSuffix(who+": "+text("state")+": "+text("why"), ": ")
	case Problems:
		s := fmt.Sprintf("%s: %d new problems, %d cleared, %d open", who, n("new"), n("cleared"), n("open"))
		if first, ok := d["first"].([]any); ok && len(first) > 0 {
			if p, ok := first[0].(map[string]any); ok {
				s += fmt.Sprintf("; first: %s%v", placeText(p), p["message"])
			}
		}
		return s
	case VerdictChanged:
		s := fmt.Sprintf("%s: %s is %s now", who, clip.Text(text("command"), 200), text("to"))
		if text("commit") != "" {
			s += " at " + text("commit")
		}
		if first, ok := d["first"].([]any); ok && len(first) > 0 && text("to") == "failing" {
			s += fmt.Sprintf("; first problem: %v", first[0])
		}
		return s
	case MachineAway:
		return who + ": the machine is away"
	case MachineBack:
		return who + ": the machine is back"
	}
	return who + ": " + ev.Name
}

// placeText returns where a problem is, "" if that is not known.
func placeText(p map[string]any) string {
	file, _ := p["file"].(string)
	switch line := whole(p["line"]); {
	case file == "":
		return ""
	case line == 0:
		return file + ": "
	default:
		return fmt.Sprintf("%s:%d: ", file, line)
	}
}

// whole returns a number of a payload that was made here or decoded from JSON.
func whole(v any) int64 {
	switch v := v.(type) {
	case int:
		return int64(v)
	case int64:
		return v
	case float64:
		return int64(v)
	}
	return 0
}
