package ahp

import "fmt"

// Methods of windowed delivery (AHP 1.1.0, early development). All are notifications.
const (
	MethodChannelFrame    = "channel/frame"    // both ways; a piece of a message of a channel
	MethodChannelCredit   = "channel/credit"   // both ways
	MethodChannelReady    = "channel/ready"    // host to client: the state at the beginning was sent
	MethodChannelReset    = "channel/reset"    // both ways: the subscription is over
	MethodChannelSnapshot = "channel/snapshot" // host to client, in frames; params are a ChannelSnapshotParams
)

// maxFlow is the most that can be offered, in bytes: what every JSON reader holds exactly.
const maxFlow = 1<<53 - 1

// FlowLimits are what one side takes of a windowed subscription. They count UTF-16 code units, two bytes each, whatever travels.
type FlowLimits struct {
	WindowBytes         int64 `json:"windowBytes"`         // of messages without credit; one more message may begin below it
	MaximumFrameBytes   int64 `json:"maximumFrameBytes"`   // of a whole channel/frame notification
	MaximumMessageBytes int64 `json:"maximumMessageBytes"` // of a message whose pieces those are
}

func (l FlowLimits) validate() error {
	for _, one := range []struct {
		name string
		n    int64
	}{{"windowBytes", l.WindowBytes}, {"maximumFrameBytes", l.MaximumFrameBytes}, {"maximumMessageBytes", l.MaximumMessageBytes}} {
		if one.n < 1 || one.n > maxFlow {
			return fmt.Errorf("flowControl: %s is %d, want 1 to 2^53-1", one.name, one.n)
		}
	}
	return nil
}

// FlowOffer asks for windowed delivery of a channel.
type FlowOffer struct {
	Receive FlowLimits `json:"receive"` // what the client takes
}

// FlowControl accepts a FlowOffer.
type FlowControl struct {
	ClientReceive FlowLimits `json:"clientReceive"` // as offered, or less
	HostReceive   FlowLimits `json:"hostReceive"`
}

// FrameParams is a piece of a message of a channel: of its text as JSON.
type FrameParams struct {
	Channel string `json:"channel"`
	Data    string `json:"data"`
	Final   bool   `json:"final,omitempty"` // the message is whole
}

// CreditParams says how much of a channel's messages was used, all in all, at the end of one.
type CreditParams struct {
	Channel       string `json:"channel"`
	ConsumedBytes int64  `json:"consumedBytes"`
}

// ChannelSnapshotParams is the state of a channel at the beginning.
type ChannelSnapshotParams struct {
	Channel  string   `json:"channel"`
	Snapshot Snapshot `json:"snapshot"`
}

// WindowsToResume are the windowed channels of a connection before.
type WindowsToResume struct {
	Items []WindowToResume `json:"items"`
}

// WindowToResume is one of them.
type WindowToResume struct {
	Channel              string `json:"channel"`
	LastAppliedServerSeq *int64 `json:"lastAppliedServerSeq,omitempty"`
}

// Validate tells what is wrong with the params.
func (p FrameParams) Validate() error {
	if p.Data == "" {
		return fmt.Errorf("channel/frame: data is empty")
	}
	return CheckURI(p.Channel)
}

// Validate tells what is wrong with the params.
func (p CreditParams) Validate() error {
	if p.ConsumedBytes < 0 || p.ConsumedBytes > maxFlow {
		return fmt.Errorf("channel/credit: consumedBytes is %d", p.ConsumedBytes)
	}
	return CheckURI(p.Channel)
}
