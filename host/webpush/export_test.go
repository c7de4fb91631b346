package webpush

// Encrypt is encrypt with the given key and salt, without padding.
var Encrypt = encrypt
