package sandbox

// SeatbeltProfile is seatbelt.
var SeatbeltProfile = seatbelt
