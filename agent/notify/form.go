package notify

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"strings"
	"time"
)

// Form is the form in which a service takes messages.
type Form string

// The forms.
const (
	JSON       Form = "json" // an object with all that is known of the message
	Ntfy       Form = "ntfy"
	Slack      Form = "slack"
	Discord    Form = "discord"
	Mattermost Form = "mattermost"
)

// forms lists the forms.
var forms = []Form{JSON, Ntfy, Slack, Discord, Mattermost}

func formNames() string {
	var names []string
	for _, f := range forms {
		names = append(names, string(f))
	}
	return strings.Join(names, ", ")
}

// maxText bounds the text of a message, in characters.
const maxText = 500

// message is what a receiver gets; JSON is its form "json".
type message struct {
	Rule  string    `json:"rule"`
	Title string    `json:"title"`
	Text  string    `json:"text"`
	At    time.Time `json:"time"`
	Count int       `json:"count"` // how much has happened
}

// request returns the request that brings the message to a receiver.
func (m *message) request(ctx context.Context, r receiver) (*http.Request, error) {
	kind, body := "application/json", []byte(nil)
	text := m.Title + "\n" + m.Text
	switch r.Form {
	case Ntfy:
		kind, body = "text/plain; charset=utf-8", []byte(m.Text)
	case Slack:
		body = encode(map[string]any{"text": slackText.Replace(text)})
	case Discord:
		body = encode(map[string]any{"content": markdown.Replace(text), "allowed_mentions": map[string]any{"parse": []string{}}, "flags": discordNoEmbeds})
	case Mattermost:
		body = encode(map[string]any{"text": strings.ReplaceAll(markdown.Replace(text), "@", "@\u200b")})
	default:
		body = encode(m)
	}
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, r.URL, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("the URL of %s is not usable", r.Name) // without the URL
	}
	q.Header.Set("Content-Type", kind)
	q.Header.Set("User-Agent", "tether")
	if r.Form == Ntfy {
		q.Header.Set("Title", mime.QEncoding.Encode("utf-8", m.Title))
	}
	return q, nil
}

func encode(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(v) // text always can be
	return b.Bytes()
}

// discordNoEmbeds keeps Discord from fetching what a message links to.
const discordNoEmbeds = 1 << 2

// Text of programs must neither look like markup of the service's nor mention anybody.
var (
	slackText = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")
	markdown  = strings.NewReplacer(`\`, `\\`, "*", `\*`, "_", `\_`, "~", `\~`, "`", "\\`", "|", `\|`, "[", `\[`, "]", `\]`, "<", `\<`, ">", `\>`, "#", `\#`)
)
