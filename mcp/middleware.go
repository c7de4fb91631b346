package mcp

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// undeclared are the methods of capabilities that the server does not declare. go-sdk
// (v1.8.0) answers them anyway.
var undeclared = map[string]bool{"prompts/list": true, "prompts/get": true, "logging/setLevel": true}

// correct is a middleware for two cases in which the SDK's answer does not agree with the
// protocol: a method of an undeclared capability must be unknown, and the contents of a
// resource must have a text, even if it is empty.
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

// textResult is the answer to resources/read. The SDK's encoding omits an empty text.
// Contents without a text or a blob are invalid, and clients refuse the whole answer.
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

// textContents is sdk.ResourceContents with a text that is never omitted.
type textContents struct {
	URI      string   `json:"uri"`
	MIMEType string   `json:"mimeType,omitempty"`
	Text     string   `json:"text"`
	Meta     sdk.Meta `json:"_meta,omitempty"`
}
