package ahp_test

import (
	"strings"
	"testing"

	"tether/ahp"
)

func TestFetchBounds(t *testing.T) {
	object := []byte(`{}`)
	for name, err := range map[string]error{
		"long arguments":   ahp.FetchParams{Arguments: make([]byte, ahp.MaxFetchArguments+1)}.Validate(),
		"negative shows":   ahp.FetchParams{Shows: -1}.Validate(),
		"great shows":      ahp.FetchParams{Shows: ahp.MaxFetchAnswer + 1}.Validate(),
		"nothing":          ahp.FetchResult{}.Validate(),
		"no object":        ahp.FetchResult{Answer: []byte(`[]`)}.Validate(),
		"long answer":      ahp.FetchResult{Answer: make([]byte, ahp.MaxFetchAnswer+1)}.Validate(),
		"long body":        ahp.FetchResult{Answer: object, Blob: &ahp.FetchBlob{Type: "image/png", Data: make([]byte, ahp.MaxFetchBlob+1)}}.Validate(),
		"type with a line": ahp.FetchResult{Answer: object, Blob: &ahp.FetchBlob{Type: "image/png\n"}}.Validate(),
		"long type":        ahp.FetchResult{Answer: object, Blob: &ahp.FetchBlob{Type: strings.Repeat("x", 200)}}.Validate(),
		"long error":       ahp.FetchResult{Error: strings.Repeat("x", 4000)}.Validate(),
	} {
		if err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
	good := ahp.FetchResult{Answer: object, Blob: &ahp.FetchBlob{Type: "image/svg+xml", Data: make([]byte, ahp.MaxFetchBlob)}}
	if err := good.Validate(); err != nil {
		t.Error(err)
	}
}
