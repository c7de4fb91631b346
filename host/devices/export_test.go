package devices

// BeginBurst and BeginEvery are limits that tests need.
const (
	BeginBurst    = beginBurst
	BeginEvery    = beginEvery
	RedeemBurst   = redeemBurst
	MaxPending    = maxPending
	MaxChallenges = maxChallenges
)

// Kept returns how many challenges, sessions and addresses are kept.
func (d *Door) Kept() (challenges, sessions, places int) {
	return d.challenges.Len(), d.sessions.Len(), d.redeems.Len()
}
