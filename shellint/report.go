package shellint

import "bytes"

// osc7 decodes file://host/path with percent-encoding and kitty's
// kitty-shell-cwd://host/path without.
func (m *Mark) osc7(s *Scanner) {
	m.Kind = KindReport
	scheme, rest, ok := bytes.Cut(m.payload, []byte("://"))
	if !ok || m.Truncated {
		return
	}
	slash := bytes.IndexByte(rest, '/')
	if slash < 0 {
		return
	}
	path := rest[slash:]
	switch string(scheme) {
	case "file":
		path = percentDecode(path)
	case "kitty-shell-cwd":
	default:
		return
	}
	m.Host = string(rest[:slash])
	m.cwd(path, s)
}

// osc9 decodes the reports of ConEmu and others: 9;9;directory, 9;12, 9;4 progress,
// 9;notification.
func (m *Mark) osc9(s *Scanner) {
	first, rest, more := cutField(m.payload)
	switch {
	case string(first) == "9":
		m.Kind = KindReport
		if more && !m.Truncated {
			if len(rest) >= 2 && rest[0] == '"' && rest[len(rest)-1] == '"' {
				rest = rest[1 : len(rest)-1]
			}
			m.cwd(rest, s)
		}
	case string(first) == "12":
		m.Kind = KindReport
	default:
		m.Kind = KindNotice
	}
}

// iterm decodes the OSC 1337 that report state.
func (m *Mark) iterm(s *Scanner) {
	m.Kind = KindReport
	key, value, ok := bytes.Cut(m.payload, []byte{'='})
	switch {
	case !ok || m.Truncated:
	case string(key) == "CurrentDir":
		m.cwd(value, s)
	case string(key) == "RemoteHost":
		m.Kind = KindHost
		m.text(value)
	}
}

// cwd makes m a KindCwd with the path. Prompts repeat the same directory; then cwd
// allocates no new string.
func (m *Mark) cwd(path []byte, s *Scanner) {
	if string(path) != s.cwd {
		s.cwd = string(path)
	}
	m.Kind, m.Text, m.HasText = KindCwd, s.cwd, true
}

// clipboard decodes the selection of an OSC 52, and whether the program asks for it.
func (m *Mark) clipboard() {
	m.Kind = KindClipboard
	key, value, _ := cutField(m.payload)
	m.Key = string(key)
	m.Read = string(value) == "?"
}
