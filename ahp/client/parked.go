package client

import (
	"context"
	"errors"

	"tether/ahp"
	"tether/jsonrpc"
)

// Parked asks the host which terminals it keeps, of those that this client may see, while their machines are away: they are in no catalogue. A host that
// does not know the question has none. It fails without a connection.
func (o *Observer) Parked(ctx context.Context) (ahp.ParkedResult, error) {
	o.mu.Lock()
	conn := o.conn
	o.mu.Unlock()
	if conn == nil {
		return ahp.ParkedResult{}, ErrUnreachable
	}
	var r ahp.ParkedResult
	err := conn.peer.Call(ctx, ahp.MethodParked, struct{}{}, &r)
	if refused, ok := errors.AsType[*jsonrpc.Error](err); ok && refused.Code == jsonrpc.CodeMethodNotFound {
		return ahp.ParkedResult{}, nil
	}
	if err == nil {
		err = r.Validate()
	}
	return r, err
}
