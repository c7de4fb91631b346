package ahp

import (
	"bytes"
	"strconv"

	"tether/internal/jsonspan"
)

// dispatchHead is the beginning of a dispatchAction message, up to its channel.
const dispatchHead = `{"jsonrpc":"2.0","method":"dispatchAction","params":{"channel":`

// AppendOutput appends a whole dispatchAction message carrying terminal/output to dst.
// Each byte of data that is not valid UTF-8 becomes U+FFFD, so data must not end inside a
// character. offset is written as OffsetKey; a negative one is not. It allocates only to
// grow dst.
func AppendOutput(dst []byte, channel string, clientSeq int64, data []byte, offset int64) []byte {
	dst = append(dst, dispatchHead...)
	dst = jsonspan.AppendQuoteString(dst, channel)
	dst = append(dst, `,"clientSeq":`...)
	dst = strconv.AppendInt(dst, clientSeq, 10)
	dst = append(dst, `,"action":{"type":"terminal/output","data":`...)
	dst = jsonspan.AppendQuote(dst, data)
	if offset >= 0 {
		dst = append(dst, `,"_meta":{"`+OffsetKey+`":`...)
		dst = strconv.AppendInt(dst, offset, 10)
		dst = append(dst, '}')
	}
	return append(dst, "}}}"...)
}

// AppendDispatch appends a whole dispatchAction message to dst, the action in the shape
// of a negotiated protocol version.
func AppendDispatch(dst []byte, channel string, clientSeq int64, a Action, version string) []byte {
	dst = append(dst, dispatchHead...)
	dst = jsonspan.AppendQuoteString(dst, channel)
	dst = append(dst, `,"clientSeq":`...)
	dst = strconv.AppendInt(dst, clientSeq, 10)
	dst = append(dst, `,"action":`...)
	return append(AppendActionFor(dst, a, version), "}}"...)
}

// DispatchedTo returns the channel of a message made by AppendOutput, AppendDispatch or
// AppendState, and "" for any other message. The channel must have no characters that
// JSON escapes.
func DispatchedTo(msg []byte) string {
	rest, ok := bytes.CutPrefix(msg, []byte(dispatchHead+`"`))
	if !ok {
		rest, ok = bytes.CutPrefix(msg, []byte(stateHead+`"`))
	}
	end := bytes.IndexByte(rest, '"')
	if !ok || end < 0 {
		return ""
	}
	return string(rest[:end])
}

// An action message consists of envelopeHead, its params and envelopeTail.
const (
	envelopeHead = `{"jsonrpc":"2.0","method":"` + MethodAction + `","params":`
	envelopeTail = `}`
)

// AppendEnvelope appends a whole action message to dst. A nil origin is left out. So is
// an empty reason, which means that the action was accepted. action is JSON and is copied
// unchanged.
func AppendEnvelope(dst []byte, channel string, serverSeq int64, origin *Origin, reason string, action []byte) []byte {
	dst = appendEnvelopeUpToAction(dst, channel, serverSeq, origin, reason)
	dst = append(dst, action...)
	return append(dst, `}`+envelopeTail...)
}

func appendEnvelopeUpToAction(dst []byte, channel string, serverSeq int64, origin *Origin, reason string) []byte {
	dst = append(dst, envelopeHead+`{"channel":`...)
	dst = jsonspan.AppendQuoteString(dst, channel)
	dst = append(dst, `,"serverSeq":`...)
	dst = strconv.AppendInt(dst, serverSeq, 10)
	if origin != nil {
		dst = append(dst, `,"origin":{"clientId":`...)
		dst = jsonspan.AppendQuoteString(dst, origin.ClientID)
		dst = append(dst, `,"clientSeq":`...)
		dst = strconv.AppendInt(dst, origin.ClientSeq, 10)
		dst = append(dst, '}')
	}
	if reason != "" {
		dst = append(dst, `,"rejectionReason":`...)
		dst = jsonspan.AppendQuoteString(dst, reason)
	}
	return append(dst, `,"action":`...)
}

// EnvelopeParams returns the params of a message made by AppendEnvelope or AppendData.
// They are a slice of msg.
func EnvelopeParams(msg []byte) []byte {
	return msg[len(envelopeHead) : len(msg)-len(envelopeTail)]
}

// AppendData appends a whole action message carrying terminal/data to dst. quoted is the
// text as a JSON string with its quotes and is copied unchanged. A nil origin is left
// out. It allocates only to grow dst.
func AppendData(dst []byte, channel string, serverSeq int64, origin *Origin, quoted []byte) []byte {
	dst = appendEnvelopeUpToAction(dst, channel, serverSeq, origin, "")
	dst = append(dst, `{"type":"`+ActionTerminalData+`","data":`...)
	dst = append(dst, quoted...)
	return append(dst, `}}`+envelopeTail...)
}
