package mcp

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// undeclared are the methods of capabilities that the server does not declare. go-sdk (v1.8.0) answers them anyway.
var undeclared = map[string]bool{"prompts/list": true, "prompts/get": true, "logging/setLevel": true}

// correct answers as the protocol wants where the SDK does not: a method of a capability that was not declared does not exist, and the
// contents of a resource have a text, even an empty one.
func correct(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
		if undeclared[method] {
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: fmt.Sprintf("unknown method %q", method)}
		}
		answer, err := next(ctx, method, req)
		if r, ok := answer.(*sdk.ReadResourceResult); ok && err == nil {
			return textResult{r}, nil
		}
		return answer, err
	}
}

// textResult is the answer to resources/read. The SDK's own encoding leaves an empty text out, and contents without a text (or a blob) are
// invalid: clients refuse the whole answer.
type textResult struct{ *sdk.ReadResourceResult }

// MarshalJSON implements json.Marshaler.
func (r textResult) MarshalJSON() ([]byte, error) {
	whole, err := r.ReadResourceResult.MarshalJSON()
	if err != nil {
		return nil, err
	}
	var members map[string]any
	if err := json.Unmarshal(whole, &members); err != nil {
		return nil, err
	}
	contents := []textContents{}
	for _, c := range r.Contents {
		contents = append(contents, textContents{URI: c.URI, MIMEType: c.MIMEType, Text: c.Text, Meta: c.Meta})
	}
	members["contents"] = contents
	return json.Marshal(members)
}

// textContents is sdk.ResourceContents whose text is always there.
type textContents struct {
	URI      string   `json:"uri"`
	MIMEType string   `json:"mimeType,omitempty"`
	Text     string   `json:"text"`
	Meta     sdk.Meta `json:"_meta,omitempty"`
}
