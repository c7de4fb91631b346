package ahp

import (
	"errors"
	"fmt"
	"strings"

	"tether/internal/jsonspan"
)

// Dispatch is the params of MethodDispatchAction with the action found but not decoded.
// Its slices alias the params; its strings do not.
type Dispatch struct {
	Channel      string
	ClientSeq    int64
	HasClientSeq bool
	Kind         string // the action's type
	Action       []byte // the whole action, valid JSON, for DecodeAction
	Data         []byte // terminal/output, data and input: the text, a JSON string with its quotes; else nil
	Offset       int64  // terminal/output: OffsetKey; -1 = absent
	Screen       []byte // terminal/output: ScreenKey, for DecodeScreen; nil = absent
}

// Decode reads params. While the channel stays the same, a reused d does not allocate.
// params must be valid JSON, as the params of a jsonrpc.Request are, because a flood must
// not be scanned twice. After an *ActionError d is valid except for Data and Offset;
// after any other error d is unusable.
func (d *Dispatch) Decode(params []byte) error {
	*d = Dispatch{Channel: d.Channel, Kind: d.Kind}
	var channel, seq []byte
	err := find(params, member{"channel", &channel}, member{"clientSeq", &seq}, member{"action", &d.Action})
	if err == nil {
		err = reuseString(&d.Channel, "channel", channel)
	}
	if err == nil && given(seq) {
		d.HasClientSeq = true
		d.ClientSeq, err = decodeInt("clientSeq", seq)
	}
	if err != nil {
		return fmt.Errorf("dispatchAction: %w", err)
	}
	a := actionView{kind: d.Kind}
	err = a.decode(d.Action)
	d.Kind, d.Data, d.Offset, d.Screen = a.kind, a.data, a.offset, a.screen
	return err
}

// EnvelopeView is an Envelope with the action found but not decoded. Its slices alias the
// params; its strings do not.
type EnvelopeView struct {
	Channel         string
	ServerSeq       int64
	HasOrigin       bool
	Origin          Origin // if HasOrigin
	Rejected        bool   // the action must not be applied
	RejectionReason string // if Rejected; may be empty
	Kind            string // the action's type
	Action          []byte // the whole action, valid JSON, for DecodeAction
	Data            []byte // terminal/output, data and input: the text, a JSON string with its quotes; else nil
	Screen          []byte // terminal/data and output: ScreenKey, for DecodeScreen; nil = absent
}

// Decode reads the params of MethodAction. While channel and origin stay the same, a
// reused v does not allocate. params must be valid JSON, as the params of a
// jsonrpc.Request are. After an error v is unusable.
func (v *EnvelopeView) Decode(params []byte) error {
	*v = EnvelopeView{Channel: v.Channel, Kind: v.Kind, Origin: Origin{ClientID: v.Origin.ClientID}}
	var channel, seq, origin, reason []byte
	err := find(params, member{"channel", &channel}, member{"serverSeq", &seq}, member{"origin", &origin},
		member{"rejectionReason", &reason}, member{"action", &v.Action})
	if err == nil {
		err = v.decodeHead(channel, seq, origin, reason)
	}
	if err != nil {
		return fmt.Errorf("action: %w", err)
	}
	a := actionView{kind: v.Kind}
	err = a.decode(v.Action)
	v.Kind, v.Data, v.Screen = a.kind, a.data, a.screen
	return err
}

func (v *EnvelopeView) decodeHead(channel, seq, origin, reason []byte) (err error) {
	if err := reuseString(&v.Channel, "channel", channel); err != nil {
		return err
	}
	if !given(seq) {
		return errors.New("serverSeq is missing")
	}
	if v.ServerSeq, err = decodeInt("serverSeq", seq); err != nil {
		return err
	}
	if given(reason) {
		v.Rejected = true
		if v.RejectionReason, err = decodeString("rejectionReason", reason); err != nil {
			return err
		}
	}
	if given(origin) {
		return v.decodeOrigin(origin)
	}
	return nil
}

func (v *EnvelopeView) decodeOrigin(raw []byte) error {
	v.HasOrigin = true
	var id, seq []byte
	if find(raw, member{"clientId", &id}, member{"clientSeq", &seq}) != nil {
		return errors.New("origin is not an object")
	}
	if given(seq) {
		n, err := decodeInt("origin: clientSeq", seq)
		if err != nil {
			return err
		}
		v.Origin.ClientSeq = n
	}
	return reuseString(&v.Origin.ClientID, "origin: clientId", id)
}

// ActionError means that an action is invalid, although its type and the message around
// it are valid. So the host can reject that action.
type ActionError struct{ Err error }

// Error implements error.
func (e *ActionError) Error() string { return e.Err.Error() }

// Unwrap returns Err.
func (e *ActionError) Unwrap() error { return e.Err }

// actionView holds the parts of an action that the hot path needs. Its input has been
// scanned before, so it is valid JSON.
type actionView struct {
	kind   string
	data   []byte
	offset int64
	screen []byte
}

func (a *actionView) decode(raw []byte) error {
	a.offset = -1
	var kind, meta []byte
	if !given(raw) {
		return errors.New("action is missing")
	}
	if find(raw, member{"type", &kind}, member{"data", &a.data}, member{"_meta", &meta}) != nil {
		return errors.New("action is not an object")
	}
	if err := a.setKind(kind); err != nil {
		return err
	}
	switch a.kind {
	case ActionTerminalOutput, ActionTerminalData, ActionTerminalInput:
		if len(a.data) == 0 || a.data[0] != '"' {
			return &ActionError{fmt.Errorf("%s: data is missing or not a string", a.kind)}
		}
	default:
		a.data = nil
	}
	switch {
	case !given(meta):
	case a.kind == ActionTerminalOutput:
		if err := a.setMeta(meta); err != nil {
			return &ActionError{fmt.Errorf("%s: %w", a.kind, err)}
		}
	case a.kind == ActionTerminalData:
		_ = a.setMeta(meta) // an invalid _meta of a host is ignored
	}
	return nil
}

// setKind sets a.kind. For the two kinds that arrive in floods it uses constants, so that
// it does not allocate whatever kind the last message had.
func (a *actionView) setKind(quoted []byte) error {
	switch string(quoted) {
	case `"` + ActionTerminalOutput + `"`:
		a.kind = ActionTerminalOutput
	case `"` + ActionTerminalData + `"`:
		a.kind = ActionTerminalData
	default:
		return reuseString(&a.kind, "action: type", quoted)
	}
	return nil
}

func (a *actionView) setMeta(meta []byte) error {
	var offset []byte
	if find(meta, member{OffsetKey, &offset}, member{ScreenKey, &a.screen}) != nil {
		return errors.New("_meta is not an object")
	}
	if !given(offset) {
		return nil
	}
	n, err := decodeInt(OffsetKey, offset)
	if err == nil && n < 0 {
		err = errNegativeOffset(n)
	}
	if err != nil {
		return err
	}
	a.offset = n
	return nil
}

// member is a member of an object that find looks for.
type member struct {
	name  string
	value *[]byte
}

// find sets the values of the members that it finds in object, which is valid JSON. It
// fails if the JSON is not an object.
func find(object []byte, wanted ...member) error {
	is := members(object, func(key, value []byte) {
		for _, m := range wanted {
			if string(key) == m.name {
				*m.value = value
			}
		}
	})
	if !is {
		return jsonspan.ErrNotObject
	}
	return nil
}

// given reports whether a member was there; null reads as absent.
func given(value []byte) bool { return value != nil && string(value) != "null" }

// reuseString sets *s to the value of a required, non-empty JSON string. If *s has that
// value already, it keeps the old string.
func reuseString(s *string, name string, quoted []byte) error {
	if n := len(quoted); n > 2 && quoted[0] == '"' && string(quoted[1:n-1]) == *s && strings.IndexByte(*s, '\\') < 0 {
		return nil // without a backslash, the text between the quotes is the string
	}
	if !given(quoted) {
		return fmt.Errorf("%s is missing", name)
	}
	v, err := decodeString(name, quoted)
	if err == nil && v == "" {
		err = fmt.Errorf("%s is empty", name)
	}
	*s = v
	return err
}

func decodeString(name string, quoted []byte) (string, error) {
	if len(quoted) == 0 || quoted[0] != '"' {
		return "", fmt.Errorf("%s is not a string", name)
	}
	b, err := jsonspan.AppendUnquote(nil, quoted)
	return string(b), err
}

func decodeInt(name string, value []byte) (int64, error) {
	n, err := jsonspan.Int(value)
	if err != nil {
		return 0, fmt.Errorf("%s is not a whole number", name)
	}
	return n, nil
}
