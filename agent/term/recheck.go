package term

// forbiddenDirectory is the detail of an Act that ends a lending for where the shell has gone.
const forbiddenDirectory = "a lend rule forbids its directory"

// recheckLendingLocked has recheckLending called if the terminal is lent: its directory is
// another one now. Not here, as what a rule says may need the disk, but for this
// directory, also if the shell is in yet another one by then; and not
// while an adopted terminal scans what there was, which tells where its shell
// has been: Adopt asks after that.
func (t *Terminal) recheckLendingLocked() {
	if t.pool.opts.MayLend != nil && len(t.lending.to) > 0 && !t.adoption.underWay() {
		go t.recheckLending(t.infoLocked())
	}
}

// recheckLending withdraws the terminal from the hosts that it is not to be lent to
// where i says that it is.
func (t *Terminal) recheckLending(i Info) {
	for _, host := range i.LentTo {
		if t.pool.mayLend(i, host) == nil {
			continue
		}
		if _, was := t.withdraw(host); was {
			t.observe(Act{Kind: ActUnlend, Host: host, Detail: forbiddenDirectory})
		}
	}
}
