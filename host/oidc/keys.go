package oidc

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	openid "github.com/coreos/go-oidc/v3/oidc"

	"tether/internal/jsonspan"
)

// keysGap is the shortest time between two requests for the provider's keys.
const keysGap = 10 * time.Second

// keys are the provider's public keys. A signature that none of them has made may be by a
// newer key, and then they are requested again: at most once in keysGap, however many
// signatures there are, since anybody can send a logout token with an unknown key. All
// that wait share the answer.
type keys struct {
	client *http.Client
	url    string

	mu    sync.Mutex
	set   openid.KeySet // of the last answer
	asked time.Time     // when the last answer, or why, was requested
	why   error         // why the last request has failed
	last  time.Time     // when keys were last requested; later than asked while a request is under way
	under chan struct{} // closed when the request under way is answered; nil without one
}

func newKeys(client *http.Client, url string) *keys {
	return &keys{client: client, url: url, set: fixedKeys([]byte(`{"keys": []}`))}
}

// fixedKeys returns the keys in a JSON Web Key Set.
func fixedKeys(jwks []byte) openid.KeySet {
	return openid.NewRemoteKeySet(openid.ClientContext(context.Background(), &http.Client{Transport: fixedAnswer(jwks)}), "https://keys.invalid")
}

// fixedAnswer is a transport with one answer, without a network. go-oidc decodes keys
// only from an answer.
type fixedAnswer []byte

// RoundTrip implements http.RoundTripper.
func (a fixedAnswer) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(a)), Request: r}, nil
}

// VerifySignature implements openid.KeySet. It may wait for keys that are requested after
// it was called, which has an end with ctx.
func (k *keys) VerifySignature(ctx context.Context, jwt string) ([]byte, error) {
	for began := time.Now(); ; {
		k.mu.Lock()
		set, asked, why := k.set, k.asked, k.why
		k.mu.Unlock()
		payload, err := set.VerifySignature(ctx, jwt)
		switch {
		case err == nil:
			return payload, nil
		case asked.Before(began):
		case why != nil:
			return nil, why
		default:
			return nil, err
		}
		if err := k.next(ctx); err != nil {
			return nil, err
		}
	}
}

// next returns when the next request for the keys is answered: the one under way, or its
// own one, which it sends as soon as it may.
func (k *keys) next(ctx context.Context) error {
	k.mu.Lock()
	under, pause := k.under, time.Until(k.last.Add(keysGap))
	if under == nil && pause <= 0 {
		k.last, k.under = time.Now(), make(chan struct{})
		k.mu.Unlock()
		k.request(context.WithoutCancel(ctx)) // others wait for it, too
		return nil
	}
	k.mu.Unlock()
	if under != nil {
		pause = keysGap
	}
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-under:
	case <-timer.C:
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

// request requests the keys. It takes at most requestTime.
func (k *keys) request(ctx context.Context) {
	jwks, err := k.read(ctx)
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.asked, k.why = k.last, err; err == nil {
		k.set = fixedKeys(jwks)
	}
	close(k.under)
	k.under = nil
}

func (k *keys) read(ctx context.Context) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, k.url, nil)
	if err != nil {
		return nil, err
	}
	answer, err := k.client.Do(r)
	if err != nil {
		return nil, fmt.Errorf("read the identity provider's keys: %w", err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("read the identity provider's keys: status %d", answer.StatusCode)
	}
	jwks, err := io.ReadAll(answer.Body)
	if err != nil {
		return nil, fmt.Errorf("read the identity provider's keys: %w", err)
	}
	var set struct {
		Keys []struct {
			Type string `json:"kty"`
		} `json:"keys"`
	}
	if err := jsonspan.Unmarshal(jwks, &set); err != nil || len(set.Keys) == 0 {
		return nil, errors.New("the identity provider's answer has no keys")
	}
	return jwks, nil
}

// known are the keys that need no request.
type known struct{ *keys }

// VerifySignature implements openid.KeySet. It waits for nothing.
func (k known) VerifySignature(ctx context.Context, jwt string) ([]byte, error) {
	k.mu.Lock()
	set := k.set
	k.mu.Unlock()
	return set.VerifySignature(ctx, jwt)
}
