package cluster

import (
	"encoding/json"
	"errors"
	"strings"

	"tether/host/access"
)

// maxOwned is how many clientIds of one principal are kept: a machine has one, and gets
// another each time it is set up anew.
const maxOwned = 16

// Owners records which principal each clientId belongs to, for all nodes. It implements
// rights.Owners.
type Owners struct {
	n      *Node
	tokens *access.Tokens // a principal without a token owns nothing
}

// Owners returns the owners of clientIds in the cluster.
func (n *Node) Owners(tokens *access.Tokens) *Owners { return &Owners{n, tokens} }

// owned is a value of the bucket.
type owned struct {
	Client    string `json:"client"`
	Principal string `json:"principal"`
}

const ownersKind = "owner"

var errTaken = errors.New("taken")

// Owner implements rights.Owners. A clientId of a principal without a token belongs to
// nobody.
func (o *Owners) Owner(clientID string) (principal string, ok bool) {
	return o.of(o.n.known(hashed(ownersKind, clientID)).data)
}

func (o *Owners) of(data []byte) (principal string, ok bool) {
	var one owned
	if json.Unmarshal(data, &one) != nil {
		return "", false
	}
	return one.Principal, o.tokens.Knows(one.Principal)
}

// Own implements rights.Owners.
func (o *Owners) Own(clientID, principal string) (ours bool, err error) {
	if owner, ok := o.Owner(clientID); ok {
		return owner == principal, nil
	}
	o.forget(principal)
	err = o.n.change(o.n.ctx, hashed(ownersKind, clientID), func(old []byte) ([]byte, error) {
		if owner, ok := o.of(old); ok && owner != principal {
			return nil, errTaken
		}
		return json.Marshal(owned{clientID, principal})
	})
	if errors.Is(err, errTaken) {
		return false, nil
	}
	return true, err
}

// forget removes a principal's oldest clientIds beyond maxOwned. If NATS does not answer,
// they stay.
func (o *Owners) forget(principal string) {
	o.n.mu.Lock()
	count, oldest, revision := 0, "", uint64(0)
	for key, v := range o.n.kept {
		var one owned
		if !strings.HasPrefix(key, ownersKind+".") || json.Unmarshal(v.data, &one) != nil || one.Principal != principal {
			continue
		}
		if count++; oldest == "" || v.revision < revision {
			oldest, revision = key, v.revision
		}
	}
	o.n.mu.Unlock()
	if count >= maxOwned {
		_ = o.n.kv.Delete(o.n.ctx, oldest)
	}
}
