package jsonrpc_test

import "time"

const timeout = 5 * time.Second // fake, inside synctest bubbles
