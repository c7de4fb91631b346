package sandbox

// BwrapArgv is bwrapArgv.
var BwrapArgv = bwrapArgv
