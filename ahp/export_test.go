package ahp

import (
	"fmt"

	"tether/internal/jsonspan"
)

// DecodeDispatch reads params.
func DecodeDispatch(params []byte) (Dispatch, error) {
	var d Dispatch
	if err := valid(params); err != nil {
		return d, fmt.Errorf("dispatchAction: %w", err)
	}
	err := d.Decode(params)
	return d, err
}

// DecodeEnvelope reads the params of MethodAction.
func DecodeEnvelope(params []byte) (EnvelopeView, error) {
	var v EnvelopeView
	if err := valid(params); err != nil {
		return v, fmt.Errorf("action: %w", err)
	}
	err := v.Decode(params)
	return v, err
}

// valid refuses params that are not a JSON object.
func valid(params []byte) error {
	return jsonspan.Object(params, func(_, _ []byte) error { return nil })
}
