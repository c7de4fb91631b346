//go:build wine

package testkit

const onWine = true
