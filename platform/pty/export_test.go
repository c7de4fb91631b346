package pty

// CommandLine is commandLine.
var CommandLine = commandLine

// BatchLine is batchLine.
var BatchLine = batchLine

// FoldEnv is foldEnv.
var FoldEnv = foldEnv

// LookupFold is lookupFold.
var LookupFold = lookupFold

// IsBatch is isBatch.
var IsBatch = isBatch

// Enter is enter.
type Enter struct{ enter }

// Feed is feed.
func (e *Enter) Feed(b []byte) []byte { return e.feed(b) }

// ConPTY is conPTY.
var ConPTY = conPTY
