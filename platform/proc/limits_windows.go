package proc

// resources is empty: Windows has no umask, nice value and resource limits of this kind.
var resources map[string]int

// Umask returns 0.
func Umask() int { return 0 }

func becomeLimited([]string) int { return statusLimited }

func ownLimits() Limits { return Limits{} }
