package agent

import (
	"io"
	"slices"
	"sync/atomic"

	"github.com/rs/zerolog"
)

// levels are those that the log can be set to.
var levels = []string{"debug", "info", "warn", "error"}

// leveled is a log whose level changes while it is written to. All loggers of a
// daemon write to one: a logger is copied, and a copy would keep its level.
type leveled struct {
	io.Writer
	level atomic.Int32 // a zerolog.Level
}

// WriteLevel implements zerolog.LevelWriter.
func (l *leveled) WriteLevel(level zerolog.Level, p []byte) (int, error) {
	if level < zerolog.Level(l.level.Load()) {
		return len(p), nil
	}
	return l.Write(p)
}

// LogLevel implements local.Leveler.
func (a *Agent) LogLevel() string { return zerolog.Level(a.leveled.level.Load()).String() }

// SetLogLevel implements local.Leveler.
func (a *Agent) SetLogLevel(name string) error {
	level, err := zerolog.ParseLevel(name)
	if err != nil || !slices.Contains(levels, name) {
		return bad("log level %.20q must be debug, info, warn or error", name)
	}
	was := a.LogLevel()
	a.leveled.level.Store(int32(min(level, zerolog.InfoLevel))) // so that the change is seen
	a.log.Info().Str("was", was).Str("is", name).Msg("log level")
	a.leveled.level.Store(int32(level))
	return nil
}
