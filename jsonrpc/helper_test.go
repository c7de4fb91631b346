package jsonrpc_test

import (
	"encoding/json"
	"time"
)

const timeout = 5 * time.Second // fake, inside synctest bubbles

func rawParams(s string) json.RawMessage { return json.RawMessage(s) }
