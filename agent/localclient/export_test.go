package localclient

import "time"

// Quick makes c wait so long instead of silentAfter and signWithin.
func (c *Client) Quick(after, sign time.Duration) { c.after, c.sign = after, sign }

// At is the raw offset at which the output would go on.
func (f *Output) At() int64 { return f.at }
