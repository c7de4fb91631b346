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
