package toolcall

// Arguments is arguments, for tests.
var Arguments = arguments
