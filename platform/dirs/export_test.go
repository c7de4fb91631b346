package dirs

// UsualRuntimeDir is usualRuntimeDir.
var UsualRuntimeDir = usualRuntimeDir
