package host

import (
	"encoding/json"
	"net/http"

	"tether/agenttools"
)

// maxPageProblems is how many problems the page gets at once; the counts say how many there are.
const maxPageProblems = 300

// pageProblems answers the page with what tools complain about in a terminal, in the words of the tool problems. The matching is that of all people at the page, who see the same
// output.
func (h *Host) pageProblems(w http.ResponseWriter, r *http.Request, p Principal, t agenttools.Terminal) *refusal {
	at := t.(lookedAt)
	if h.problemLooks.first(p.Name + " " + at.t.id) { // the page asks again and again
		h.audit(AuditSubscribed, remote{name: r.RemoteAddr, principal: p}, AuditEvent{Terminal: at.t.uri, Detail: "problems"})
	}
	a, err := h.matching.Ask(r.Context(), at.t.id, t, 0, maxPageProblems)
	if err != nil {
		return errUnreadable
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(a) // fails only with the connection
	return nil
}
