"""2 points: follows each minute by itself from place to place."""


def hours_cause(minutes):
    lost = []
    for minute in range(minutes):
        place, half = minute, minutes // 2
        while half > 0 and place < 2 * half:
            place, half = place % half, half // 2
        if place > 0:
            lost.append(minute)
    return lost
