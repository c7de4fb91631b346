package verdict

// CompareSome is Compare with another bound of different lines.
var CompareSome = compare
